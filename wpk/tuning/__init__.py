"""Choosing by measuring: candidates tried on a GPU, whole engines compared."""
