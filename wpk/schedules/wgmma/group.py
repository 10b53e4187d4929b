"""Warpgroups of a block: their sizes, and how many multiply."""

import numpy as np

from wpk.performance import Columns, Floats

GROUP_ROWS, GROUP_THREADS, WARP = 64, 128, 32
"""Of a warpgroup; and threads of a warp."""


def consumer_groups(columns: Columns) -> Floats:
    """Count the consumer warpgroups of a product: two that have tiles of their own, or as many as a tile's rows need."""
    found: Floats = np.where(columns["pingpong"] == 1, 2, columns["block_m"] // GROUP_ROWS)
    return found
