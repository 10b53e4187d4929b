"""Persistent blocks: each computes tiles one after another, and its pipeline goes on (scheduler.cuh)."""

from dataclasses import replace

import numpy as np

from wpk.dims import minimum, product
from wpk.dtypes import Precision
from wpk.performance import Columns, Floats, Work
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import Grid
from wpk.schedules.wgmma.staging import staged_at_once
from wpk.targets import Target

_OF_SM = (1, 2, 3, 4)  # blocks: more have tiles so small that L2 is the limit
_TILE = 64  # rows and columns of the smallest tiles that are worth it


def persistent_axis(rows: int, columns: int, target: Target) -> tuple[int, ...]:
    """Return the values to try: no persistent blocks unless tiles of 64 x 64 are more than fit all SMs at once.

    Args:
        rows: Of the product.
        columns: Of the product.
        target: The GPU.
    """
    blocks = tuple(count * target.sm_count for count in _OF_SM)
    tiles = -(-rows // _TILE) * -(-columns // _TILE)
    return (0, *blocks) if tiles > blocks[-1] else (0,)


def pingpong_axis(persistent: tuple[int, ...], precision: Precision) -> tuple[int, ...]:
    """Return the values to try: turns of warpgroups where there are persistent blocks, but not in fp32.

    Args:
        persistent: What `persistent_axis` returned.
        precision: Of the product.
    """
    return (0, 1) if len(persistent) > 1 and precision is not Precision.FP32 else (0,)


def persistent_limits(target: Target) -> tuple[Limit, ...]:
    """All persistent blocks run at once, and some have two tiles."""
    return (
        Limit("persistent == 0 or turns > 1", "there are fewer persistent blocks than tiles"),
        Limit(
            f"persistent == 0 or persistent <= resident * {target.sm_count}",
            f"the target's {target.sm_count} SMs hold all persistent blocks at once",
        ),
    )


def turns(tiles: Floats, columns: Columns) -> Floats:
    """Count the tiles that a block computes one after another: those of the block that has most."""
    return np.where(columns["persistent"] > 0, np.ceil(tiles / _blocks(tiles, columns)), 1.0)


def in_turn(work: Work, columns: Columns) -> Work:
    """Return the work of tiles, done by persistent blocks.

    Steps and operations are those of the block that has most tiles, since all wait for it; what is
    moved is that of an average block.
    """
    most, blocks = turns(work.blocks, columns), _blocks(work.blocks, columns)
    average = work.blocks / blocks
    # Of two warpgroups in turns, one waits while the other multiplies.
    in_turns = 1 + columns.get("pingpong", np.zeros_like(columns["persistent"]))
    return replace(
        work,
        blocks=blocks,
        block_flops=work.block_flops * most,
        thread_flops=work.thread_flops * most,
        thread_loads=work.thread_loads * most,
        thread_slots=work.thread_slots * most,
        end_slots=work.end_slots * most,
        end_fetches=work.end_fetches * most / in_turns,
        steps=work.steps * most,
        block_transactions=work.block_transactions * average,
        store_bytes=work.store_bytes * average,
        turns=most,
    )


def _blocks(tiles: Floats, columns: Columns) -> Floats:
    persistent = columns["persistent"]
    return np.where(persistent > 0, np.minimum(tiles, np.maximum(persistent, 1)), tiles)


def staged_columns(columns: Columns) -> Floats:
    """Count the columns that a warp takes through its staging at once: all of its block's only tile."""
    block_n = columns["block_n"]
    return np.where(columns["persistent"] > 0, staged_at_once(block_n), block_n)


def persistent_grid(grid: Grid, persistent: int) -> Grid:
    """Return the persistent blocks, no more than there are tiles; the grid as it is where there are none."""
    x, y, z = grid
    return (minimum(product(x, y), persistent), 1, z) if persistent else grid
