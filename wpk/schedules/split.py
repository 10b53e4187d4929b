"""Reductions split among blocks: what the schedules of all matrix-like templates share (split_k.cuh)."""

from collections.abc import Sequence

import numpy as np

from wpk.performance import Columns, Floats
from wpk.schedules.limit import Limit
from wpk.targets import Target

_PARTS = (1, 2, 3, 4, 6, 8, 9, 12, 16)
_MAX_GRID_Z = 65535
_ADDRESSES = 12  # registers besides; read from ptxas reports

USEFUL_BLOCKS_SM = 4
"""Blocks of a split reduction for each SM at most: more parts only add partial sums to move."""


def split_axis(reduction: int, least_step: int) -> tuple[int, ...]:
    """Return the parts to try for a reduction whose steps take ``least_step`` elements at least."""
    steps = -(-reduction // least_step)
    return tuple(parts for parts in _PARTS if parts == 1 or parts <= steps)


def sum_registers(accumulators: Floats, threads: Floats, columns: Columns) -> Floats:
    """Count the registers of a thread while it adds parts (SplitRange::add); 0 where there are none."""
    under_way = np.minimum(np.where(accumulators <= 32, 64.0, 32.0), 16384 / np.maximum(threads, 1))
    return np.where(columns["split"] > 1, accumulators + under_way + _ADDRESSES, 0.0)


def split_limits(reduction: int, groups: int = 1, step: str = "block_k") -> Sequence[Limit]:
    """Return what SplitRange can divide, and a grid can hold.

    Args:
        reduction: Elements of it.
        groups: What the grid's z axis counts besides parts.
        step: Elements that a block takes in a step, over the parameters.
    """
    return (
        Limit(
            f"split == 1 or split <= ceil_div({reduction}, {step})",
            "every part of the reduction has a step",
        ),
        Limit(
            f"split <= {_MAX_GRID_Z // groups}",
            f"a grid holds at most {_MAX_GRID_Z // groups} parts",
        ),
    )


def useful_split(target: Target) -> Limit:
    """Return the limit of parts: more than an SM can use only add partial sums to move."""
    most = USEFUL_BLOCKS_SM * target.sm_count
    return Limit(
        f"split == 1 or blocks <= {most}",
        f"of a split reduction the target has at most {most} useful blocks",
    )
