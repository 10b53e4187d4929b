"""Registers that a consumer's thread needs, as ptxas was seen to use them."""

import numpy as np

from wpk.dtypes import Precision
from wpk.performance import Columns, Floats
from wpk.problems import Convolution, Matmul, MomentsMatmul, NormedMatmul
from wpk.schedules.row_norm import is_centred, looks_at_rows
from wpk.schedules.split import sum_registers
from wpk.schedules.wgmma.group import GROUP_ROWS, GROUP_THREADS, consumer_groups
from wpk.schedules.wgmma.residual import residual_of
from wpk.schedules.wgmma.tensor_copies import SWIZZLE

_OTHERS = 28  # addresses and descriptors; read, as all of these, from ptxas reports
_FP32_ROWS = 40  # of A, with what of their parts lives at once
_PERSISTENT, _PERSISTENT_FP32 = 8, 36  # of what goes on from tile to tile
_READ_RESIDUAL = 8  # of a residual that the epilogue of warpgroups in turns reads itself

# Of rows that are normalised, with their means and the sums of a few columns.
_MOMENTS, _MOMENTS_IN_LOOP, _CENTRED = 4, 14, 36
_KNOWN_MOMENTS, _KNOWN_IN_LOOP, _STORED_MOMENTS = 4, 12, 7


def needed(problem: Convolution | Matmul, columns: Columns) -> Floats:
    """Count the registers that a consumer's thread needs."""
    return (
        product_registers(columns, problem.precision)
        + _norm_registers(problem, columns)
        + _residual_registers(problem, columns)
    )


def product_registers(columns: Columns, precision: Precision) -> Floats:
    """Count the accumulators and the rest; or the sum of split-K that meets in global memory.

    Of fp32 accumulators twice, a warp's rows of a box with both of their parts, and up to four
    vectors of B under way to where what is cut off it lies.
    """
    tile_groups = columns["block_m"] // GROUP_ROWS
    accumulators = columns["block_n"] / 2 * np.where(columns["pingpong"] == 1, tile_groups, 1)
    consumers = consumer_groups(columns) * GROUP_THREADS
    vectors = np.ceil(columns["block_n"] * SWIZZLE / 16 / consumers)
    split = accumulators + _FP32_ROWS + 4 * np.minimum(vectors, 4)
    more = split if precision is Precision.FP32 else 0.0
    persistent = _PERSISTENT_FP32 if precision is Precision.FP32 else _PERSISTENT
    others = _OTHERS + np.where(columns["persistent"] > 0, persistent, 0)
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
