"""Arrays in memory: how a value's strides and padding place the elements of an ONNX tensor."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from wpk.dims import evaluate
from wpk.execution import Bytes
from wpk.lowering.program import Value
from wpk.strided import strided


def logical_shape(value: Value, dims: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of the ONNX tensor for an assignment of the free dimensions."""
    return tuple(evaluate(size, dims) for size in value.logical_shape)


def footprint(value: Value, dims: Mapping[str, int]) -> int:
    """Bytes from the value's first element to the end of its last row, padding included.

    None are used where the tensor has no elements, whatever place the plan gives it.
    """
    if 0 in value.logical_shape:
        return 0
    extents = _extents(value, dims)
    last = sum((n - 1) * s for n, s in zip(extents, value.strides, strict=True))
    return (last + 1 + value.padding) * value.dtype.bytes


def to_memory(value: Value, array: NDArray[np.generic], dims: Mapping[str, int]) -> Bytes:
    """The bytes of ``array`` as the value lies in memory; everything between rows is zero."""
    memory = np.zeros(footprint(value, dims), np.uint8)
    if memory.size:
        view(value, memory, dims)[...] = array.reshape(_extents(value, dims))
    return memory


def from_memory(value: Value, memory: Bytes, dims: Mapping[str, int]) -> NDArray[np.generic]:
    """The ONNX tensor whose bytes begin at the start of ``memory``."""
    shape = logical_shape(value, dims)
    if 0 in shape:
        return np.zeros(shape, value.dtype.numpy)
    return np.array(view(value, memory, dims)).reshape(shape)


def view(value: Value, memory: Bytes, dims: Mapping[str, int]) -> NDArray[np.generic]:
    """The elements of a value as a strided view of its bytes, with the value's own axes."""
    extents = _extents(value, dims)
    item = value.dtype.bytes
    flat = memory[: memory.size // item * item].view(value.dtype.numpy)
    return strided(flat, extents, [stride * item for stride in value.strides])


def _extents(value: Value, dims: Mapping[str, int]) -> tuple[int, ...]:
    return (evaluate(value.leading.expression, dims), *value.shape[1:])
