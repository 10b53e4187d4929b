"""Blocks that stay: each computes tiles one after another, and its ring goes on (wgmma_persistent.cuh)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wpk.dims import minimum, product
from wpk.performance.work import Columns, Floats, Work
from wpk.schedules.matrix_tiles import words
from wpk.schedules.single_kernel import Grid
from wpk.schedules.template import Constraint
from wpk.targets.target import Target

STAGED_COLUMNS = 64
"""That a warp takes through its staging at once (Warpgroups::Staged)."""

_OF_SM = (1, 2, 3, 4)  # blocks: more have tiles so small that L2 is the limit
_TILE = 64  # rows and columns of the smallest tiles that are worth it


def persistent_axis(rows: int, columns: int, target: Target) -> tuple[int, ...]:
    """Values to try: none that stay unless tiles of 64 x 64 are more than fit all SMs at once.

    Args:
        rows: Of the product.
        columns: Of the product.
        target: The GPU.
    """
    blocks = tuple(count * target.sm_count for count in _OF_SM)
    tiles = -(-rows // _TILE) * -(-columns // _TILE)
    return (0, *blocks) if tiles > blocks[-1] else (0,)


WHOLE_REDUCTIONS = Constraint(
    lambda c: (c["persistent"] <= 0) | ((c["split"] == 1) & (c["share"] == 0)),
    words("{persistent} blocks stay, split={split} share={share}: they have whole reductions"),
)
"""Of blocks that stay, as WgmmaShape has it."""


def persistent_constraints(
    tiles: Callable[[Columns], Any], resident: Callable[[Columns], Floats], target: Target
) -> Sequence[Constraint]:
    """That all blocks that stay run at once, and some have two tiles.

    Args:
        tiles: What blocks compute at once, in all.
        resident: Blocks that an SM holds at once.
        target: The GPU.
    """
    return (
        Constraint(
            lambda c: c["persistent"] >= 0,
            words("persistent is a number of blocks, not {persistent}"),
        ),
        Constraint(
            lambda c: (c["persistent"] <= 0) | (tiles(c) > c["persistent"]),
            words("{persistent} blocks stay, there are no more tiles"),
        ),
        Constraint(
            lambda c: (c["persistent"] <= 0) | (c["persistent"] <= resident(c) * target.sm_count),
            words(
                f"{{persistent}} blocks stay, the target's {target.sm_count} SMs do not hold them"
            ),
        ),
    )


def turns(tiles: Floats, columns: Columns) -> Floats:
    """Tiles that a block computes one after another: those of the block that has most."""
    return np.where(columns["persistent"] > 0, np.ceil(tiles / _blocks(tiles, columns)), 1.0)


def in_turn(work: Work, columns: Columns) -> Work:
    """The work of tiles, done by blocks that stay.

    Steps and operations are those of the block that has most tiles, since all wait for it; what is
    moved is that of an average block.
    """
    most, blocks = turns(work.blocks, columns), _blocks(work.blocks, columns)
    average = work.blocks / blocks
    return replace(
        work,
        blocks=blocks,
        block_flops=work.block_flops * most,
        thread_flops=work.thread_flops * most,
        thread_loads=work.thread_loads * most,
        thread_slots=work.thread_slots * most,
        steps=work.steps * most,
        block_transactions=work.block_transactions * average,
        store_bytes=work.store_bytes * average,
        turns=most,
    )


def _blocks(tiles: Floats, columns: Columns) -> Floats:
    stay = columns["persistent"]
    return np.where(stay > 0, np.minimum(tiles, np.maximum(stay, 1)), tiles)


def persistent_grid(grid: Grid, persistent: int) -> Grid:
    """The blocks that stay, no more than there are tiles; the grid as it is where none do."""
    x, y, z = grid
    return (minimum(product(x, y), persistent), 1, z) if persistent else grid
