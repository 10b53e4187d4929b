"""The packing of depthwise filters: rows of channels, one for each tap (r, s)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.problems import Convolution

_ROW_BYTES = 16

Array = NDArray[Any]


def depthwise_row(problem: Convolution, element_bytes: int) -> int:
    """Elements of a packed row: the output channels, rounded up to 16 bytes."""
    step = _ROW_BYTES // element_bytes
    return -(-problem.k // step) * step


def depthwise_shape(problem: Convolution, element_bytes: int) -> tuple[int, ...]:
    """Shape of the packed filters."""
    return (*problem.filter, depthwise_row(problem, element_bytes))


def pack_depthwise(array: Array, problem: Convolution) -> Array:
    """(k, 1, r, s), or (c, k / c, r, s) where transposed, to (r, s, row); zeros after channel k."""
    r, s = problem.filter
    packed = np.zeros(depthwise_shape(problem, array.itemsize), array.dtype)
    packed[..., : problem.k] = array.reshape(problem.k, r, s).transpose(1, 2, 0)
    return packed


def unpack_depthwise(packed: Array, problem: Convolution) -> Array:
    """Inverse of `pack_depthwise`."""
    krs = packed[..., : problem.k].transpose(2, 0, 1)
    multiplier = problem.k // problem.c
    shape = (problem.c, multiplier) if problem.transposed else (problem.k, 1)
    return krs.reshape(*shape, *problem.filter)
