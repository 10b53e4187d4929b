"""Warpgroups of a block: their sizes, how many multiply, and what their turns take."""

import numpy as np

from wpk.dtypes import Precision
from wpk.performance import WARPGROUP_SHARE, Columns, Floats, tensor_peak
from wpk.targets import Target

GROUP_ROWS, GROUP_THREADS, WARP = 64, 128, 32
"""Of a warpgroup; and threads of a warp."""

AWAITED_CYCLES = 100.0
"""Of a step's way until it is a warpgroup's turn to ask for its products (group_turns.cuh). Fitted to 38 pairs of schedules with
turns and without, of two attentions and two feed-forward blocks, recorded on an H200: 50 to 170 by each of them alone."""


def consumer_groups(columns: Columns) -> Floats:
    """Count the consumer warpgroups of a product: two that have tiles of their own, or as many as a tile's rows need."""
    found: Floats = np.where(columns["pingpong"] == 1, 2, columns["block_m"] // GROUP_ROWS)
    return found


def product_rate(precision: Precision, target: Target) -> float:
    """Return the operations that warpgroups of an SM multiply and add in a cycle; infinite where there are no tensor cores."""
    peak = tensor_peak(precision, target) or np.inf
    return float(peak * WARPGROUP_SHARE / (target.sm_count * target.clock))
