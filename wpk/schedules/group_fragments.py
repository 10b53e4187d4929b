"""Filters of a grouped convolution as the lanes of a warp hold them for mma (tile_groups.cuh): the packing ``group_mma``.

Eight filters are a tile; a lane's words of it, two numbers each, lie in vectors of four, those of all lanes side by
side. A filter has zeros for the other group of its bundle, and there are zeros behind the last filter and the last word.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.problems import Convolution

Array = NDArray[Any]

EIGHT = 8
"""Filters of a tile, and channels of half a step of mma."""

_LANES, _WORDS, _NUMBERS = 4, 4, 2  # lanes of a filter, words of a vector, numbers of a word


def bundle_groups(problem: Convolution) -> int:
    """Return the groups that are multiplied together: two where one's channels or filters are half of eight."""
    channels, filters = problem.c // problem.groups, problem.k // problem.groups
    return 1 if channels % EIGHT == 0 and filters % EIGHT == 0 else 2


def row_chunks(problem: Convolution) -> int:
    """Return the chunks of eight channels of a bundle under a row of the filter."""
    return problem.filter[1] * bundle_groups(problem) * (problem.c // problem.groups) // EIGHT


def fragments_shape(problem: Convolution, element_bytes: int) -> tuple[int, ...]:
    """Return the shape of packed filters: (tiles, vectors, lanes, numbers), whatever the bytes of a number."""
    del element_bytes
    words = problem.filter[0] * row_chunks(problem)
    return (-(-problem.k // EIGHT), -(-words // _WORDS), EIGHT * _LANES, _WORDS * _NUMBERS)


def pack_fragments(array: Array, problem: Convolution) -> Array:
    """Pack filters (k, c / groups, r, s): of 4, or of whole eights of channels and of filters a group."""
    tiles, vectors, lanes, numbers = fragments_shape(problem, array.itemsize)
    (r, s), together = problem.filter, bundle_groups(problem)
    rows = np.zeros((tiles * EIGHT, r, s, together, array.shape[1]), array.dtype)
    filters = np.arange(problem.k)
    rows[filters, :, :, _member(problem)] = array.transpose(0, 2, 3, 1)
    words = np.zeros((tiles, EIGHT, vectors * _WORDS, _LANES, _NUMBERS), array.dtype)
    held = r * row_chunks(problem)
    words[:, :, :held] = rows.reshape(tiles, EIGHT, held, _LANES, _NUMBERS)
    by_vector = words.reshape(tiles, EIGHT, vectors, _WORDS, _LANES, _NUMBERS)
    return by_vector.transpose(0, 2, 1, 4, 3, 5).reshape(tiles, vectors, lanes, numbers)


def unpack_fragments(packed: Array, problem: Convolution) -> Array:
    """Return the inverse of `pack_fragments`."""
    tiles, vectors, *_ = packed.shape
    (r, s), together = problem.filter, bundle_groups(problem)
    by_vector = packed.reshape(tiles, vectors, EIGHT, _LANES, _WORDS, _NUMBERS)
    words = by_vector.transpose(0, 2, 1, 4, 3, 5).reshape(tiles, EIGHT, -1, _LANES, _NUMBERS)
    held = r * row_chunks(problem)
    channels = problem.c // problem.groups
    rows = words[:, :, :held].reshape(tiles * EIGHT, r, s, together, channels)
    return rows[np.arange(problem.k), :, :, _member(problem)].transpose(0, 3, 1, 2)


def _member(problem: Convolution) -> NDArray[np.int64]:
    """Which group of its bundle each filter belongs to."""
    groups = np.arange(problem.k) // (problem.k // problem.groups)
    members: NDArray[np.int64] = groups % bundle_groups(problem)
    return members
