"""The packing of filters over images of few channels: rows of chunks of taps (tile_patch.cuh)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.problems import Convolution

CHANNELS = 4
"""Channels of a pixel in shared memory, zero where an image has fewer."""

CHUNK_BYTES = 16

Array = NDArray[Any]


def taps_a_chunk(element_bytes: int) -> int:
    """Neighbouring taps, each of four channels, that lie in 16 bytes."""
    return CHUNK_BYTES // (CHANNELS * element_bytes)


def chunks_a_row(problem: Convolution, element_bytes: int) -> int:
    """Chunks of a row of a filter; the last one may be cut."""
    return -(-problem.filter[1] // taps_a_chunk(element_bytes))


def product_steps(problem: Convolution, element_bytes: int) -> int:
    """Pairs of chunks of a filter: the steps of a tensor core."""
    return -(-problem.filter[0] * chunks_a_row(problem, element_bytes) // 2)


def patch_shape(problem: Convolution, element_bytes: int) -> tuple[int, ...]:
    """Shape of the packed filters."""
    steps, taps = product_steps(problem, element_bytes), taps_a_chunk(element_bytes)
    return (problem.k, steps * 2, taps, CHANNELS)


def pack_patch(array: Array, problem: Convolution) -> Array:
    """(k, c, r, s) to (k, chunks, taps, 4): zeros behind the last tap, channel and chunk."""
    (r, s), size = problem.filter, array.itemsize
    chunks, taps = chunks_a_row(problem, size), taps_a_chunk(size)
    rows = np.zeros((problem.k, r, chunks * taps, CHANNELS), array.dtype)
    rows[:, :, :s, : problem.c] = array.transpose(0, 2, 3, 1)
    packed = np.zeros(patch_shape(problem, size), array.dtype)
    packed[:, : r * chunks] = rows.reshape(problem.k, r * chunks, taps, CHANNELS)
    return packed


def unpack_patch(packed: Array, problem: Convolution) -> Array:
    """Inverse of `pack_patch`."""
    (r, s), chunks = problem.filter, chunks_a_row(problem, packed.itemsize)
    rows = packed[:, : r * chunks].reshape(problem.k, r, -1, CHANNELS)
    return rows[:, :, :s, : problem.c].transpose(0, 3, 1, 2)
