"""Gathers by indices that say more than that they are indices."""
