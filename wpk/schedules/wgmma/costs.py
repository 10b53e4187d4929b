"""What schedules take: threads, shared memory, and what they make the GPU do."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import Precision
from wpk.performance import WARP_MMA_SHARE, WARPGROUP_SHARE, Columns, Floats, Work
from wpk.problems import ClampedConvolution, Convolution, Matmul
from wpk.schedules.matrix_epilogue import stores_by_columns
from wpk.schedules.row_norm import (
    PRODUCT_COLUMNS,
    fragment_products,
    fragment_slots,
    looks_at_rows,
    moments_moved,
)
from wpk.schedules.tiles.matrix import TileCosts, TiledProduct
from wpk.schedules.wgmma import handed_registers
from wpk.schedules.wgmma.consumer_registers import needed
from wpk.schedules.wgmma.group import GROUP_ROWS, GROUP_THREADS, WARP, consumer_groups
from wpk.schedules.wgmma.multicast import NOTHING, Multicast
from wpk.schedules.wgmma.persistent import in_turn, staged_columns
from wpk.schedules.wgmma.residual import residual_of
from wpk.schedules.wgmma.staging import column_row_bytes
from wpk.schedules.wgmma.tensor_copies import SWIZZLE, box_depth
from wpk.targets import Target

BARRIER_BYTES = 16
"""Of a stage's two barriers."""

PORT_BYTES = 128.0
"""Bytes that an SM's shared memory reads in a cycle."""

_STAGED_ROWS = 16  # that a warp stores together

_MEMORY_FETCHES = 3.0
"""Loads from L2 that take as long as one that global memory answers while all SMs ask for as much as it gives: some
900 cycles. An assumption, for problems whose bytes L2 does not hold."""

_BOX_FRAGMENTS = 4  # of 16 elements in a row of a box
_LIMIT_SLOTS = 165.0  # of a warp, for its rows of a box between limits; from nvdisasm's listings

_MOMENTS_WAIT = 2.0
"""Times their own that products for moments take, since they wait for those of warpgroups: fitted to six normed products
of 197 to 100352 rows that were measured on an H100."""

_BESIDE_SUMS = 26
"""Registers beside its sums that ptxas asks for an instruction that multiplies; it counts those that a thread begins with, and none
that it is handed."""

WHOLE_WARPGROUPS = f"ceil_div(threads, {GROUP_THREADS}) * {GROUP_THREADS}"
"""Threads for which ptxas sets registers aside where warpgroups multiply; read from its reports."""


def threads(problem: Convolution | Matmul, columns: Columns) -> Floats:
    """Count the threads of a block: its consumers, the producer's warp, and one for the residual; or the producer's warpgroup."""
    return _threads(needed(problem, columns), columns)


def handed(problem: Convolution | Matmul, columns: Columns) -> NDArray[np.int64]:
    """Count the registers that a consumer's thread is handed; 0 where it begins with what it needs.

    Blocks that have one tile each have a producer's warp in any case.
    """
    return _handed(needed(problem, columns), columns)


def _threads(registers: Floats, columns: Columns) -> Floats:
    """As `threads`, of the registers that consumers need."""
    warps = 1 + (columns["residual"] > 0)
    return handed_registers.threads(
        consumer_groups(columns), _handed(registers, columns), WARP * warps
    )


def _handed(registers: Floats, columns: Columns) -> NDArray[np.int64]:
    """As `handed`, of the registers that consumers need."""
    counted: NDArray[np.int64] = np.where(
        _may_hand(registers, columns),
        handed_registers.handed(registers, consumer_groups(columns)),
        0,
    )
    return counted


def _launched(registers: Floats, columns: Columns) -> Floats:
    """Count the registers with which a thread begins; those that it needs where they are too many in any case."""
    launched = handed_registers.launched(registers, consumer_groups(columns))
    return np.where(_may_hand(registers, columns), launched, registers)


def _may_hand(registers: Floats, columns: Columns) -> NDArray[np.bool_]:
    """Whether a persistent block has as many registers, and each begins with enough for an instruction of its tile's columns."""
    groups = consumer_groups(columns)
    enough = registers <= handed_registers.most(groups)
    multiplied = columns["block_n"] / 2 + _BESIDE_SUMS
    begins = multiplied <= handed_registers.launched(multiplied, groups)
    may: NDArray[np.bool_] = (columns["persistent"] > 0) & enough & begins
    return may


def shared_bytes(problem: Convolution | Matmul, columns: Columns) -> Floats:
    """Count the bytes of the stages, or of the epilogue's staging (16 rows a warp) where larger, and of barriers.

    Persistent blocks have both. Beside them the blocks of a cluster take what
    the others send, and tiles of the residual lie. In fp32 two boxes of B are beside the
    stages, for what is cut off its numbers. The header compares them (WgmmaPipeline::blockBytes).
    """
    precision, residual = problem.precision, residual_of(problem)
    size = float(precision.storage.bytes)
    stage = (columns["block_m"] + columns["block_n"]) * columns["block_k"] * size
    beside = 2 * columns["block_n"] * SWIZZLE if precision is Precision.FP32 else 0
    tiles = columns["stages"] * stage + beside
    barriers = columns["stages"] * BARRIER_BYTES
    staging = consumer_groups(columns) * GROUP_ROWS * _staged_row_bytes(problem, columns)
    needed: Floats = np.where(
        columns["persistent"] > 0, tiles + staging, np.maximum(tiles, staging)
    )
    beside_all = _sent_bytes(columns) + (residual.shared_bytes(columns) if residual else 0.0)
    total: Floats = needed + barriers + BARRIER_BYTES * columns["pingpong"] + beside_all
    return total


def _staged_row_bytes(problem: Convolution | Matmul, columns: Columns) -> Floats:
    """Count the bytes of a row of the staging: floats of a tile's columns, of persistent blocks fewer at once.

    Or numbers as they are stored, of a power of two of columns.
    """
    floats = (staged_columns(columns) + 8) * 4.0
    if not stores_by_columns(problem):
        return floats
    by_columns = column_row_bytes(columns["block_n"], problem.y.dtype.bytes)
    return np.where(columns["cluster"] == 1, floats, by_columns)


def _sent_bytes(columns: Columns) -> Floats:
    """Count the bytes in which a block of a cluster takes the others' partial sums, and their barrier."""
    share = -(-columns["block_m"] // columns["split"])
    part = share * (columns["block_n"] + 8) * 4.0
    sent: Floats = columns["cluster"] * (BARRIER_BYTES + (columns["split"] - 1) * part)
    return sent


def _row_slots(problem: Convolution | Matmul, columns: Columns) -> Floats | float:
    """Issue slots of a thread in a step for the rows of a warp: between limits, or normalised."""
    boxes = columns["block_k"] / box_depth(problem.precision)
    if isinstance(problem, ClampedConvolution):
        limited: Floats = _LIMIT_SLOTS * boxes
        return limited
    of_tile = np.where(columns["pingpong"] == 1, columns["block_m"] // GROUP_ROWS, 1)
    looked: Floats = fragment_slots(problem) * _BOX_FRAGMENTS * boxes * of_tile
    return looked


def work(
    product: TiledProduct,
    multicast: Multicast,
    problem: Convolution | Matmul,
    columns: Columns,
    target: Target,
) -> Work:
    """Return what schedules make the GPU do; warpgroups read both tiles from shared memory as they multiply.

    Of fp32 three products read B or what is cut off it, which is written in between. Rows between
    limits go through registers; in fp32 they do in any case. Rows that are normalised are read once more,
    in front of the products of their stage.
    """
    precision = problem.precision
    size = float(precision.storage.bytes)
    times, written = (3, 2 * columns["block_n"]) if precision is Precision.FP32 else (1, 0)
    seen = 2 * GROUP_ROWS if looks_at_rows(problem) else GROUP_ROWS
    rows = columns["block_m"] / GROUP_ROWS * (seen + times * columns["block_n"]) + written
    registers = needed(problem, columns)
    count = _threads(registers, columns)
    costs = TileCosts(
        unit=precision,
        threads=count,
        shared_bytes=shared_bytes(problem, columns),
        registers=_launched(registers, columns),
        loads=rows * columns["block_k"] * size / PORT_BYTES * WARP / count,
        stages=columns["stages"].astype(np.float64),
        slots=_row_slots(problem, columns),
        slots_beside=looks_at_rows(problem),
        by_warpgroups=True,
    )
    tiles = multicast.product(product, columns, target).work(columns, costs)
    tiles = replace(
        tiles,
        multicast=columns["share"] != NOTHING,
        cluster_blocks=_cluster_blocks(columns),
        end_fetches=_end_fetches(product, problem, columns, target),
    )
    tiles = moments_moved(tiles, problem, columns, target)
    tiles = _with_moments(tiles, problem, columns)
    return in_turn(tiles, columns)


def _with_moments(tiles: Work, problem: Convolution | Matmul, columns: Columns) -> Work:
    """Add the products for the moments of rows that are normalised: warp-wide ones, beside a tile's columns."""
    products = _MOMENTS_WAIT * fragment_products(problem)
    seen = products * PRODUCT_COLUMNS * WARPGROUP_SHARE / WARP_MMA_SHARE
    more = 1 + seen / columns["block_n"]
    return replace(
        tiles, block_flops=tiles.block_flops * more, thread_flops=tiles.thread_flops * more
    )


def _cluster_blocks(columns: Columns) -> Floats:
    shared = np.where(columns["share"] != NOTHING, columns["shared_by"], 1)
    split = np.where(columns["cluster"] == 1, columns["split"], 1)
    blocks: Floats = (shared * split).astype(np.float64)
    return blocks


def _end_fetches(
    product: TiledProduct, problem: Convolution | Matmul, columns: Columns, target: Target
) -> Floats:
    """Count the loads that a thread waits for as it stores a tile, none where tensor copies have brought the residual.

    A warp asks for the operands of what it stages, 16 rows, and at most of `TiledProduct.fetched_together`.
    """
    if not product.fetched_together:
        return np.zeros(len(columns["block_m"]))
    block_m, block_n = columns["block_m"], columns["block_n"]
    staged = _STAGED_ROWS * staged_columns(columns)
    together = np.minimum(product.fetched_together, staged / WARP)
    groups = np.where(columns["pingpong"] == 1, 1, block_m // GROUP_ROWS)
    parts = np.where(columns["cluster"] == 1, columns["split"], 1)
    stored = block_m * block_n / (GROUP_THREADS * groups) / parts
    far = problem.traffic().bytes > target.l2_bytes
    waits: Floats = np.ceil(stored / together) * (_MEMORY_FETCHES if far else 1.0)
    return np.where(columns["residual"] > 0, 0.0, waits)
