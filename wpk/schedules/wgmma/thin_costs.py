"""What schedules of products by a weight that stays take, and what they make the GPU do."""

from dataclasses import replace

import numpy as np

from wpk.performance import SCHEDULERS, WARPGROUP_SHARE, Columns, Floats, Work, tensor_peak
from wpk.problems import Matmul, NormedMatmul, moments_of_row, stored_slots
from wpk.schedules.block_limits import shared_limit, thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_epilogue import fetched_together, passed_bytes, stores_by_columns
from wpk.schedules.row_norm import (
    fragment_products,
    fragment_slots,
    is_centred,
    looks_at_rows,
    moments_moved,
)
from wpk.schedules.wgmma.boxed_rows import ELEMENT, SLICE, tight_swizzle, tile_bytes, whole_slices
from wpk.schedules.wgmma.costs import BARRIER_BYTES, PORT_BYTES
from wpk.schedules.wgmma.group import GROUP_ROWS, GROUP_THREADS, WARP
from wpk.schedules.wgmma.persistent import STAGED_COLUMNS, in_turn, turns
from wpk.targets import Target

_WEIGHT_BARRIER_BYTES = 8

_OTHER_REGISTERS = 48
"""Addresses, descriptors, barriers, and what goes on from tile to tile."""

_MOST_REGISTERS, _REGISTER_UNIT = 255, 8  # of a thread; in which they are set aside


def stored_columns(problem: Matmul) -> int:
    """Return the columns that are written, y's padding included."""
    return problem.n + problem.y.padding


def threads(columns: Columns) -> Floats:
    """Count the threads of a block: its warpgroups bring their rows themselves."""
    count: Floats = (columns["warpgroups"] * GROUP_THREADS).astype(np.float64)
    return count


def shared_bytes(problem: Matmul, columns: Columns) -> Floats:
    """Count the bytes of the rows, of the weight, of the staged output and of barriers.

    The header compares them (ThinShape::sharedBytes).
    """
    groups, block_n = columns["warpgroups"], columns["block_n"]
    rows = groups * columns["row_stages"]
    swizzle = tight_swizzle(problem.k)
    weight = _steps(problem, columns) * tile_bytes(block_n, problem.k, swizzle)
    tiles = rows * tile_bytes(GROUP_ROWS, problem.k, swizzle) + weight
    staging = groups * GROUP_ROWS * _staged_row_bytes(problem, columns)
    total: Floats = tiles + staging + rows * BARRIER_BYTES + _WEIGHT_BARRIER_BYTES
    return total


def limits(target: Target) -> tuple[Limit, ...]:
    """Return what a block may take on the target."""
    file = f"{target.registers_sm} // threads // {_REGISTER_UNIT} * {_REGISTER_UNIT}"
    return (
        thread_limit(target),
        shared_limit(target),
        Limit(
            f"registers <= min({_MOST_REGISTERS}, {file})",
            f"a thread has at most {_MOST_REGISTERS} registers, all threads {target.registers_sm}: more would spill",
        ),
    )


def _steps(problem: Matmul, columns: Columns) -> Floats:
    steps: Floats = np.ceil(stored_columns(problem) / columns["block_n"])
    return steps


def _staged_row_bytes(problem: Matmul, columns: Columns) -> Floats:
    """Count the bytes of a row of the staging: floats of some columns, or numbers as they are stored."""
    block_n = columns["block_n"]
    if not stores_by_columns(problem):
        return (np.gcd(block_n, STAGED_COLUMNS) + 8) * 4.0
    together = np.where(block_n >= 64, 64, np.where(block_n >= 32, 32, 16))
    return together * float(problem.y.dtype.bytes)


def _needed(problem: Matmul, columns: Columns) -> Floats:
    """Count the registers of a thread."""
    needed: Floats = columns["block_n"] / 2 * (1 + columns["ahead"]) + float(_OTHER_REGISTERS)
    return needed


def work(problem: Matmul, columns: Columns, target: Target) -> Work:
    """Return what schedules make the GPU do: sums of some warpgroups are stored beside the products of others."""
    count, groups = threads(columns), columns["warpgroups"].astype(np.float64)
    rows, block_n = groups * GROUP_ROWS, columns["block_n"].astype(np.float64)
    steps, k = _steps(problem, columns), float(whole_slices(problem.k))
    products = 2.0 * rows * steps * block_n * k
    staged = 2.0 * rows * stored_columns(problem) * problem.y.dtype.bytes
    multiplied = groups * steps * (GROUP_ROWS + block_n) * k * ELEMENT
    tile = Work(
        unit=problem.precision,
        element_bytes=ELEMENT,
        blocks=np.ceil(problem.m.value / rows),
        threads=count,
        shared_bytes=shared_bytes(problem, columns),
        registers=_needed(problem, columns),
        block_flops=products,
        thread_flops=products / count,
        block_transactions=rows * problem.k * ELEMENT / target.transaction_bytes,
        thread_loads=(multiplied + staged) / PORT_BYTES * WARP / count,
        store_bytes=rows * stored_columns(problem) * passed_bytes(problem),
        steps=np.ones_like(count),
        stages=columns["row_stages"].astype(np.float64),
        early=columns["early"] == 1,
        by_warpgroups=True,
    )
    return in_turn(tile, columns)
