"""Tiles of a block as columns of schedules: what they hold, what they take, what limits them."""
