"""What schedules of a feed-forward block by warpgroups take, and what they make the GPU do."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wpk.performance import SCHEDULERS, Columns, Floats, Work
from wpk.problems import FeedForward, stored_slots
from wpk.schedules.block_limits import shared_limit
from wpk.schedules.limit import Limit, value_of
from wpk.schedules.matrix_epilogue import fetched_together, passed_bytes, stores_by_columns
from wpk.schedules.wgmma import handed_registers
from wpk.schedules.wgmma.boxed_rows import ELEMENT, tight_swizzle, tile_bytes, whole_slices
from wpk.schedules.wgmma.costs import BARRIER_BYTES, PORT_BYTES
from wpk.schedules.wgmma.group import (
    AWAITED_CYCLES,
    GROUP_ROWS,
    GROUP_THREADS,
    WARP,
    product_rate,
)
from wpk.schedules.wgmma.persistent import in_turn, turns
from wpk.schedules.wgmma.staging import column_row_bytes, staged_at_once
from wpk.targets import Target

_OTHER_REGISTERS = {True: "44", False: "48"}
_LEAST_OTHER_REGISTERS = {
    True: "20 + block_n // 4 + 4 * pingpong",
    False: "36 + block_n // 4 + 4 * pingpong",
}
"""Addresses, descriptors, barriers, and what goes on from tile to tile, of rows that are normalised and of others, whose
numbers ptxas computes more of at once: what it takes where there are enough, and what it gets along with. Read from its
reports."""

_MOST_STAGED = 32  # columns that a warp takes through its staging as floats at once

_PACKED_SLOTS = 1.75
"""Issue slots of a thread for each hidden number beside what is computed: half a packing, its share of its column's
operands, which are loaded and widened once for two rows, and a quarter of an instruction that ties it to the wait behind it. As
nvdisasm lists it: 56 for 32 numbers of whole steps of a normed product with a bias of 16 bits."""

_STEP_SLOTS = 77.0
"""Of a thread in a step, however few its columns are: descriptors and issue of the products, barriers. As nvdisasm lists it: 71 of a
step with ten products of weights that stay, 83 of one with 14 of weights in a ring."""

_ISSUE_CYCLES = 1.75
"""Of a scheduler for an issue slot, where several warpgroups compute and multiply: multiply-adds and products take turns
(docs/decisions/0105-what-products-contend-with.md), of which this counts the products' part. Fitted to 80 schedules of two blocks, recorded
on an H200 (tests/replay/h200-beside): 1.75 by those of Swin's stage 1 alone, 1.6 by stage 2's."""

_END_SLOTS = 10.0
"""Of an element of the output beside its expression: the look at the rows that are normalised, staging. As nvdisasm
lists it: 646 instructions of a tile are no step's where a thread has 48 elements, 1048 where it has 96."""

_STEP_CYCLES = 600.0
"""Of a step's way that nothing of its own hides: barriers, the start of a product. As attention's; the recording agrees with 400
to 950."""

_TILE_CYCLES = 1500.0
"""Of a tile's way beside its steps: its rows are awaited and looked at, its output staged and stored. An estimate, of which the
recording says little: schedules of one warpgroup in stage 1 ask for more, those in stage 2 for none."""


def threads(problem: FeedForward, columns: Columns) -> Floats:
    """Count the threads of a block: its consumers, and a producer's warp, or its warpgroup where that hands registers over."""
    return handed_registers.threads(columns["warpgroups"], handed(problem, columns), WARP)


def handed(problem: FeedForward, columns: Columns) -> NDArray[np.int64]:
    """Count the registers that a consumer's thread is handed; 0 where it begins with what it needs."""
    return handed_registers.handed(_needed(problem, columns), columns["warpgroups"])


def shared_bytes(problem: FeedForward, columns: Columns) -> Floats:
    """Count the bytes of the rows, of the weights' stages, of the staged output and of barriers.

    The header compares them (FeedForwardShape::sharedBytes).
    """
    groups, block_n = columns["warpgroups"], columns["block_n"]
    rows = groups * columns["row_stages"]
    stage = _tile_bytes(block_n, problem.k) + _tile_bytes(block_n, problem.n)
    tiles = rows * _tile_bytes(GROUP_ROWS, problem.k) + columns["stages"] * stage
    barriers = (rows + 2 * columns["stages"]) * BARRIER_BYTES + 8 * groups * columns["pingpong"]
    staging = groups * GROUP_ROWS * _staged_row_bytes(problem)
    total: Floats = tiles + staging + barriers
    return total


def limits(problem: FeedForward, target: Target) -> tuple[Limit, ...]:
    """Return what a block may take on the target."""
    return shared_limit(target), *handed_registers.limits(
        _consumer_registers(problem, _LEAST_OTHER_REGISTERS)
    )


def work(problem: FeedForward, columns: Columns, target: Target) -> Work:
    """Return what schedules make the GPU do: hidden numbers of some warpgroups beside the products of others."""
    count, groups = threads(problem, columns), columns["warpgroups"].astype(np.float64)
    rows, block_n = groups * GROUP_ROWS, columns["block_n"].astype(np.float64)
    steps = np.ceil(problem.hidden_size / block_n)
    k, n = float(whole_slices(problem.k)), float(whole_slices(problem.n))
    products = 2.0 * rows * steps * block_n * (k + n)
    weights = steps * block_n * (k + n) * ELEMENT
    stays = (columns["stages"] == steps) & (columns["persistent"] > 0)
    multiplied = steps * (rows * k + groups * block_n * (k + n)) * ELEMENT
    beside = _hidden_cycles(problem, groups, block_n)
    tile = Work(
        unit=problem.precision,
        element_bytes=ELEMENT,
        blocks=np.ceil(problem.m.value / rows),
        threads=count,
        shared_bytes=shared_bytes(problem, columns),
        registers=handed_registers.launched(_needed(problem, columns), columns["warpgroups"]),
        block_flops=products,
        thread_flops=products / count,
        block_transactions=(rows * k * ELEMENT + np.where(stays, 0.0, weights))
        / target.transaction_bytes,
        thread_loads=multiplied / PORT_BYTES * WARP / count,
        store_bytes=rows * problem.n * passed_bytes(problem.second),
        steps=steps,
        stages=columns["stages"].astype(np.float64),
        early=columns["early"] == 1,
        end_slots=rows * problem.n * (_END_SLOTS + stored_slots(problem.second)) / count,
        chain_cycles=_chain(problem, columns, target, beside / groups),
        by_warpgroups=True,
    )
    most = turns(tile.blocks, columns)
    blocks = in_turn(tile, columns)
    kept = np.where(stays, weights, 0.0) / target.transaction_bytes
    return replace(
        blocks,
        block_transactions=blocks.block_transactions + kept,
        beside_cycles=_ISSUE_CYCLES * steps * beside * most,
        # Warpgroups have tiles of their own: while one waits, others go on.
        end_fetches=_fetches(problem, columns) * most / groups,
    )


def _chain(problem: FeedForward, columns: Columns, target: Target, own: Floats) -> Floats:
    """Count the cycles of a warpgroup's own way through a step: hidden sums, then numbers; behind the last, the output.

    What a stage's wait counts of its products is theirs as well.
    """
    rate = product_rate(problem.precision, target)
    block_n, groups = columns["block_n"], columns["warpgroups"]
    up, down = (
        2.0 * GROUP_ROWS * block_n * whole_slices(size) / rate for size in (problem.k, problem.n)
    )
    steps = np.ceil(problem.hidden_size / block_n)
    step = own + _STEP_CYCLES + AWAITED_CYCLES * columns["pingpong"]
    way = up + step + (down + _TILE_CYCLES) / steps
    counted = groups * (up + down) / columns["stages"]
    chain: Floats = np.maximum(way - counted, 0.0)
    return chain


def _hidden_cycles(problem: FeedForward, groups: Floats, block_n: Floats) -> Floats:
    """Count the cycles of an SM's schedulers for the hidden numbers of a step."""
    numbers = GROUP_ROWS * block_n * (stored_slots(problem.first) + _PACKED_SLOTS)
    slots = numbers + GROUP_THREADS * _STEP_SLOTS
    cycles: Floats = groups * slots / (SCHEDULERS * WARP)
    return cycles


def _fetches(problem: FeedForward, columns: Columns) -> Floats:
    """Count the loads that a thread waits for as it stores a tile: all are asked for before sums of theirs are staged."""
    return np.full(len(columns["block_n"]), float(fetched_together(problem.second) > 0))


def _staged_row_bytes(problem: FeedForward) -> float:
    """Count the bytes of a row of the staging: floats of some columns, or numbers as they are stored."""
    whole = np.asarray(whole_slices(problem.n))
    if stores_by_columns(problem.second):
        return float(column_row_bytes(whole, problem.y.dtype.bytes))
    return float(staged_at_once(whole, _MOST_STAGED) + 8) * 4.0


def _needed(problem: FeedForward, columns: Columns) -> NDArray[np.int64]:
    """Count the registers of a consumer's thread."""
    needed: NDArray[np.int64] = value_of(_consumer_registers(problem, _OTHER_REGISTERS), columns)
    return needed


def _consumer_registers(problem: FeedForward, rest: Mapping[bool, str]) -> str:
    """Of hidden sums, their numbers of 16 bits, what belongs to their columns, the output's sums, and the rest."""
    sums = 0 if problem.norm is None or problem.norm.sums is None else 2
    words = sums + sum(max(1, each.dtype.bytes // 2) for each in problem.hidden.operands)
    others = rest[problem.norm is not None]
    return f"3 * block_n // 4 + {words} * block_n // 8 + {whole_slices(problem.n) // 2} + {others}"


def _tile_bytes(rows: NDArray[np.int64] | int, columns: int) -> Floats:
    """Count the bytes of rows in boxes that end with the fewest zeros."""
    return tile_bytes(rows, columns, tight_swizzle(columns))
