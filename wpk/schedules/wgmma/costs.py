"""What schedules take: threads, shared memory, registers, and what they make the GPU do."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import Precision
from wpk.performance import WARP_MMA_SHARE, WARPGROUP_SHARE, Columns, Floats, Work
from wpk.problems import ClampedConvolution, Convolution, Matmul, MomentsMatmul, NormedMatmul
from wpk.schedules.matrix_epilogue import stores_by_columns
from wpk.schedules.row_norm import (
    PRODUCT_COLUMNS,
    fragment_products,
    fragment_slots,
    is_centred,
    looks_at_rows,
    moments_moved,
)
from wpk.schedules.split import sum_registers
from wpk.schedules.tiles.matrix import TileCosts, TiledProduct
from wpk.schedules.wgmma import handed_registers
from wpk.schedules.wgmma.group import GROUP_ROWS, GROUP_THREADS, WARP
from wpk.schedules.wgmma.multicast import NOTHING, Multicast
from wpk.schedules.wgmma.persistent import in_turn, staged_columns
from wpk.schedules.wgmma.residual import residual_of
from wpk.targets import Target

BARRIER_BYTES = 16
"""Of a stage's two barriers."""

PORT_BYTES = 128.0
"""Bytes that an SM's shared memory reads in a cycle."""

_STAGED_ROWS = 16  # that a warp stores together

_MEMORY_FETCHES = 3.0
"""Loads from L2 that take as long as one that global memory answers while all SMs ask for as much as it gives: some
900 cycles. An assumption, for problems whose bytes L2 does not hold."""

_BOX_ROW_BYTES = 128
_BOX_FRAGMENTS = 4  # of 16 elements in a row of a box
_FP32_ROWS = (
    40  # of A, with what of their parts lives at once; read, as the next one, from ptxas reports
)
_OTHER_REGISTERS = 28  # addresses and descriptors
_PERSISTENT_REGISTERS, _PERSISTENT_FP32 = 8, 36  # of what goes on from tile to tile; as the others
_LAGGING = 2  # of a warpgroup that begins behind another; as the others
_READ_RESIDUAL = (
    8  # of a residual that the epilogue of warpgroups in turns reads itself; as the others
)
_LIMIT_SLOTS = 165.0  # of a warp, for its rows of a box between limits; from nvdisasm's listings

_MOMENTS_WAIT = 2.0
"""Times their own that products for moments take, since they wait for those of warpgroups: fitted to six normed products
of 197 to 100352 rows that were measured on an H100."""

_MOMENTS, _MOMENTS_IN_LOOP, _CENTRED = (
    4,
    14,
    36,
)  # of rows that are normalised, with their means and the sums of a few columns; as the others

_KNOWN_MOMENTS, _KNOWN_IN_LOOP, _STORED_MOMENTS = 4, 12, 7  # as the others

WHOLE_WARPGROUPS = f"ceil_div(threads, {GROUP_THREADS}) * {GROUP_THREADS}"
"""Threads for which ptxas sets registers aside where warpgroups multiply; read from its reports."""


def threads(problem: Convolution | Matmul, columns: Columns) -> Floats:
    """Count the threads of a block: its consumers, the producer's warp, and one for the residual; or the producer's warpgroup."""
    warps = 1 + (columns["residual"] > 0)
    return handed_registers.threads(_groups(columns), handed(problem, columns), WARP * warps)


def handed(problem: Convolution | Matmul, columns: Columns) -> NDArray[np.int64]:
    """Count the registers that a consumer's thread is handed; 0 where it begins with what it needs.

    Blocks that have one tile each have a producer's warp in any case.
    """
    needed, groups = _needed(problem, columns), _groups(columns)
    counted: NDArray[np.int64] = np.where(
        _may_hand(needed, columns), handed_registers.handed(needed, groups), 0
    )
    return counted


def _launched(problem: Convolution | Matmul, columns: Columns) -> Floats:
    """Count the registers with which a thread begins; those that it needs where they are too many in any case."""
    needed = _needed(problem, columns)
    launched = handed_registers.launched(needed, _groups(columns))
    return np.where(_may_hand(needed, columns), launched, needed)


def _may_hand(needed: Floats, columns: Columns) -> NDArray[np.bool_]:
    may: NDArray[np.bool_] = (columns["persistent"] > 0) & (
        needed <= handed_registers.most(_groups(columns))
    )
    return may


def _needed(problem: Convolution | Matmul, columns: Columns) -> Floats:
    """Count the registers that a consumer's thread needs."""
    return (
        registers(columns, problem.precision)
        + _norm_registers(problem, columns)
        + _residual_registers(problem, columns)
    )


def _consumers(columns: Columns) -> Floats:
    """Count the threads that multiply."""
    return _groups(columns) * GROUP_THREADS


def _groups(columns: Columns) -> Floats:
    """Count the consumer warpgroups: two that have tiles of their own, or as many as a tile's rows need."""
    groups: Floats = np.where(columns["pingpong"] == 1, 2, columns["block_m"] // GROUP_ROWS)
    return groups


def shared_bytes(problem: Convolution | Matmul, columns: Columns) -> Floats:
    """Count the bytes of the stages, or of the epilogue's staging (16 rows a warp) where larger, and of barriers.

    Persistent blocks have both. Beside them the blocks of a cluster take what
    the others send, and tiles of the residual lie. In fp32 two boxes of B are beside the
    stages, for what is cut off its numbers. The header compares them (WgmmaPipeline::blockBytes).
    """
    precision, residual = problem.precision, residual_of(problem)
    size = float(precision.storage.bytes)
    stage = (columns["block_m"] + columns["block_n"]) * columns["block_k"] * size
    beside = 2 * columns["block_n"] * _BOX_ROW_BYTES if precision is Precision.FP32 else 0
    tiles = columns["stages"] * stage + beside
    barriers = columns["stages"] * BARRIER_BYTES
    staging = _groups(columns) * GROUP_ROWS * _staged_row_bytes(problem, columns)
    needed: Floats = np.where(
        columns["persistent"] > 0, tiles + staging, np.maximum(tiles, staging)
    )
    beside_all = _sent_bytes(columns) + (residual.shared_bytes(columns) if residual else 0.0)
    ordered = (columns["pingpong"] == 1) | (columns["lag"] > 0)
    total: Floats = needed + barriers + BARRIER_BYTES * ordered + beside_all
    return total


def _staged_row_bytes(problem: Convolution | Matmul, columns: Columns) -> Floats:
    """Count the bytes of a row of the staging: floats of a tile's columns, of persistent blocks fewer at once.

    Or numbers as they are stored, of a power of two of columns.
    """
    floats = (staged_columns(columns) + 8) * 4.0
    if not stores_by_columns(problem):
        return floats
    block_n = columns["block_n"]
    together = np.where(block_n >= 64, 64, np.where(block_n >= 32, 32, 16))
    return np.where(columns["cluster"] == 1, floats, together * float(problem.y.dtype.bytes))


def _sent_bytes(columns: Columns) -> Floats:
    """Count the bytes in which a block of a cluster takes the others' partial sums, and their barrier."""
    share = -(-columns["block_m"] // columns["split"])
    part = share * (columns["block_n"] + 8) * 4.0
    sent: Floats = columns["cluster"] * (BARRIER_BYTES + (columns["split"] - 1) * part)
    return sent


def registers(columns: Columns, precision: Precision) -> Floats:
    """Count the accumulators and the rest; or the sum of split-K that meets in global memory.

    Of fp32 accumulators twice, a warp's rows of a box with both of their parts, and up to four
    vectors of B under way to where what is cut off it lies.
    """
    tile_groups = columns["block_m"] // GROUP_ROWS
    accumulators = columns["block_n"] / 2 * np.where(columns["pingpong"] == 1, tile_groups, 1)
    consumers = _consumers(columns)
    vectors = np.ceil(columns["block_n"] * _BOX_ROW_BYTES / 16 / consumers)
    split = accumulators + _FP32_ROWS + 4 * np.minimum(vectors, 4)
    more = split if precision is Precision.FP32 else 0.0
    persistent = _PERSISTENT_FP32 if precision is Precision.FP32 else _PERSISTENT_REGISTERS
    others = _OTHER_REGISTERS + np.where(columns["persistent"] > 0, persistent, 0)
    others = others + np.where(columns["lag"] > 0, _LAGGING, 0)
    through_memory = np.where(columns["cluster"] == 1, 1, columns["split"])
    summing = sum_registers(accumulators, consumers, {"split": through_memory})
    most: Floats = np.maximum(accumulators + more + others, summing)
    return most


def _norm_registers(problem: Convolution | Matmul, columns: Columns) -> Floats | float:
    """Count what is kept of a warp's rows that are normalised: their moments, and a few sums of a lane's columns at a time.

    Of rows whose moments are known two numbers are kept; of rows that are stored with their
    moments what is rounded, beside operands that the epilogue reads itself.
    """
    if isinstance(problem, MomentsMatmul):
        asked = (columns["persistent"] > 0) & (columns["residual"] == 0)
        return np.where(asked, _STORED_MOMENTS, 0.0)
    if not isinstance(problem, NormedMatmul):
        return 0.0
    if not looks_at_rows(problem):
        return np.where(columns["persistent"] > 0, _KNOWN_IN_LOOP, _KNOWN_MOMENTS)
    moments: Floats = np.where(columns["persistent"] > 0, _MOMENTS_IN_LOOP, _MOMENTS)
    return moments + (_CENTRED if is_centred(problem) else 0.0)


def _residual_registers(problem: Convolution | Matmul, columns: Columns) -> Floats | float:
    """Count what the addresses and the vectors of a residual take that no tensor copy brings."""
    if residual_of(problem) is None:
        return 0.0
    reads = (columns["pingpong"] == 1) & (columns["residual"] == 0)
    return np.where(reads, _READ_RESIDUAL, 0.0)


def _row_slots(problem: Convolution | Matmul, columns: Columns) -> Floats | float:
    """Issue slots of a thread in a step for the rows of a warp: between limits, or normalised."""
    boxes = columns["block_k"] * problem.precision.storage.bytes / _BOX_ROW_BYTES
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
    count = threads(problem, columns)
    costs = TileCosts(
        unit=precision,
        threads=count,
        shared_bytes=shared_bytes(problem, columns),
        registers=_launched(problem, columns),
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
