"""What schedules of products by a weight that stays take, and what they make the GPU do."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Columns, Floats, Work
from wpk.problems import Matmul, MomentsMatmul, NormedMatmul, moments_group, stored_slots
from wpk.schedules.block_limits import shared_limit, thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_epilogue import fetched_together, passed_bytes, stores_by_columns
from wpk.schedules.row_norm import moments_moved
from wpk.schedules.wgmma.boxed_rows import ELEMENT, SLICE, tight_swizzle, tile_bytes, whole_slices
from wpk.schedules.wgmma.costs import BARRIER_BYTES, PORT_BYTES
from wpk.schedules.wgmma.group import GROUP_ROWS, GROUP_THREADS, WARP, product_rate
from wpk.schedules.wgmma.persistent import in_turn, turns
from wpk.schedules.wgmma.staging import column_row_bytes, staged_at_once
from wpk.targets import Target

_WEIGHT_BARRIER_BYTES = 8

_MOST_STAGED = 96  # columns that a warp takes through its staging as floats at once

_OTHER_REGISTERS = {True: 66.0, False: 76.0}
_LEAST_OTHER_REGISTERS = {True: 60.0, False: 72.0}
"""Addresses, descriptors, barriers, operands of columns or of rows, and what goes on from tile to tile, of what is stored by
columns and of what is not: what it takes where there are enough, and what it gets along with. Read from ptxas reports."""

_NORMED_REGISTERS = 12.0  # of sums that are normalised in front of such a staging

_MOST_REGISTERS, _REGISTER_UNIT = 255, 8  # of a thread; in which they are set aside

_ELEMENT_SLOTS = {True: 1.6, False: 7.0}
"""Of an element beside its expression: it is packed, staged and stored, by columns or as floats; from nvdisasm's listings."""

_STEP_SLOTS, _TILE_SLOTS = 45.0, 170.0
"""Of a step: descriptors and issue of the products, their wait; of a tile: its rows are asked for, awaited and released, moments
are read. Listings of Swin's 96 x 288 with known moments, 1080 slots a tile, and of 96 x 96 with a residual, 620, are within 5 %."""

_ISSUE_CYCLES = 1.85
"""Of a scheduler for an issue slot, where several warpgroups compute and multiply. As feed-forward blocks'; not measured here."""

_OWN_CYCLES = 2.5
"""Of a warp for an issue slot where it is alone on its scheduler: most depend on the one before. An assumption."""

_FETCH_CYCLES = 300.0
"""Of a load that L2 answers, which has what was asked for ahead: as models count it elsewhere."""

_AWAITED_CYCLES = 100.0
"""Of a step's way from the start of its products to their end beside what they take. An assumption."""


def stored_columns(problem: Matmul) -> int:
    """Return the columns that are written, y's padding included."""
    return problem.n + problem.y.padding


def column_unit(problem: Matmul) -> int:
    """Return the columns of which a step has a multiple: those of a product, or of a group that has moments together."""
    return moments_group(problem.n) if isinstance(problem, MomentsMatmul) else SLICE


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


def _staged_columns(problem: Matmul, columns: Columns) -> NDArray[np.int64]:
    """Count the columns that a warp takes through its staging as floats at once."""
    return staged_at_once(columns["block_n"], _MOST_STAGED, column_unit(problem))


def _staged_row_bytes(problem: Matmul, columns: Columns) -> Floats:
    """Count the bytes of a row of the staging: floats of some columns, or numbers as they are stored."""
    if not stores_by_columns(problem):
        return 4.0 * (_staged_columns(problem, columns) + 8).astype(np.float64)
    return column_row_bytes(columns["block_n"], problem.y.dtype.bytes)


def _registers(problem: Matmul, columns: Columns, target: Target) -> Floats:
    """Count the registers of a thread: those that it takes, or as many as there are where it gets along with them."""
    sums = columns["block_n"] / 2 * (1 + columns["ahead"])
    by_columns, most = stores_by_columns(problem), _most_registers(columns, target)
    normed = 0.0 if by_columns or not isinstance(problem, NormedMatmul) else _NORMED_REGISTERS
    least, usual = (
        sums + others[by_columns] + normed for others in (_LEAST_OTHER_REGISTERS, _OTHER_REGISTERS)
    )
    registers: Floats = np.where(least <= most, np.minimum(usual, most), usual)
    return registers


def _most_registers(columns: Columns, target: Target) -> Floats:
    """Count the registers that a thread of a block can have."""
    left = target.registers_sm // threads(columns) // _REGISTER_UNIT * _REGISTER_UNIT
    most: Floats = np.minimum(_MOST_REGISTERS, left)
    return most


def work(problem: Matmul, columns: Columns, target: Target) -> Work:
    """Return what schedules make the GPU do: sums of some warpgroups are stored beside the products of others.

    What a block's step is to models is a whole tile here: nothing in it waits for a copy.
    """
    count, groups = threads(columns), columns["warpgroups"].astype(np.float64)
    rows, block_n = groups * GROUP_ROWS, columns["block_n"].astype(np.float64)
    steps, k = _steps(problem, columns), float(whole_slices(problem.k))
    products = 2.0 * rows * steps * block_n * k
    weight = problem.n * problem.k * ELEMENT / target.transaction_bytes
    multiplied = groups * steps * (GROUP_ROWS + block_n) * k * ELEMENT
    staged = 2.0 * GROUP_ROWS * groups * _staged_bytes(problem, columns)
    slots = _slots(problem, columns)
    tile = Work(
        unit=problem.precision,
        element_bytes=ELEMENT,
        blocks=np.ceil(problem.m.value / rows),
        threads=count,
        shared_bytes=shared_bytes(problem, columns),
        registers=_registers(problem, columns, target),
        block_flops=products,
        thread_flops=products / count,
        block_transactions=rows * problem.k * ELEMENT / target.transaction_bytes,
        thread_loads=(multiplied + staged) / PORT_BYTES * WARP / count,
        store_bytes=rows * stored_columns(problem) * passed_bytes(problem),
        steps=np.ones_like(count),
        stages=columns["row_stages"].astype(np.float64),
        early=columns["early"] == 1,
        chain_cycles=_chain(problem, columns, slots, target),
        by_warpgroups=True,
    )
    of_rows = {"block_m": columns["warpgroups"] * GROUP_ROWS}
    moved = moments_moved(tile, problem, of_rows, target)
    blocks = in_turn(replace(moved, end_fetches=0.0), columns)  # the fetch is in the chain
    return replace(
        blocks,
        block_transactions=blocks.block_transactions + weight,
        beside_cycles=_ISSUE_CYCLES * groups * slots * turns(tile.blocks, columns),
    )


def _slots(problem: Matmul, columns: Columns) -> Floats:
    """Count the issue slots of a thread for a tile. Each scheduler has a warp of each warpgroup."""
    elements = GROUP_ROWS * stored_columns(problem) / GROUP_THREADS
    beside = _ELEMENT_SLOTS[stores_by_columns(problem)]
    slots: Floats = (
        elements * (stored_slots(problem) + beside)
        + _STEP_SLOTS * _steps(problem, columns)
        + _TILE_SLOTS
    )
    return slots


def _chain(problem: Matmul, columns: Columns, slots: Floats, target: Target) -> Floats:
    """Count the cycles of a warpgroup's own way through a tile: sums that it waits for, and their way to memory.

    What a stage's wait counts of its products is theirs as well.
    """
    rate = product_rate(problem.precision, target)
    steps, k = _steps(problem, columns), whole_slices(problem.k)
    product = 2.0 * GROUP_ROWS * columns["block_n"] * k / rate
    awaited = np.where(columns["ahead"] == 1, 1, steps) * (product + _AWAITED_CYCLES)
    way = awaited + _OWN_CYCLES * slots + _FETCH_CYCLES * _fetches(problem, columns)
    counted = columns["warpgroups"] * steps * product / columns["row_stages"]
    chain: Floats = np.maximum(way - counted, 0.0)
    return chain


def _fetches(problem: Matmul, columns: Columns) -> Floats:
    """Count the loads that a thread waits for in a tile: known moments, and operands of what it stages at once."""
    known = isinstance(problem, NormedMatmul) and problem.moments is not None
    steps = _steps(problem, columns)
    if not fetched_together(problem):
        return np.zeros_like(steps) + known
    fetches: Floats = steps * (columns["block_n"] // _staged_columns(problem, columns)) + known
    return fetches


def _staged_bytes(problem: Matmul, columns: Columns) -> Floats:
    """Count the bytes of a row of a tile as it is staged: floats, or numbers as they are stored."""
    size = float(problem.y.dtype.bytes) if stores_by_columns(problem) else 4.0
    staged: Floats = _steps(problem, columns) * columns["block_n"] * size
    return staged
