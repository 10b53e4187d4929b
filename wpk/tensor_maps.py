"""What a tensor map must be for a GPU's tensor copies to take it.

CUDA driver API, ``cuTensorMapEncodeTiled`` and ``cuTensorMapEncodeIm2col`` without interleave; PTX ISA,
"Tensors": sizes of boxes, strides and swizzles.
"""

from collections.abc import Iterator
from itertools import chain

from wpk.execution import TensorMap
from wpk.launch import Im2col

ALIGNMENT = 16
"""Bytes: of the address, of strides, and of a row of the box."""

_ELEMENT_BYTES = (1, 2, 4, 8)
_FP32_BYTES = 4
_MOST_DIMENSIONS = 5
_MOST_EXTENT = 2**32
_STRIDE_LIMIT = 2**40
_MOST_BOX = 256
_SWIZZLES = (0, 32, 64, 128)

# In im2col mode.
_MOST_PIXELS = 1024
_MOST_STEP = 8
_OFFSETS = {3: (-(2**15), 2**15 - 1), 4: (-128, 127), 5: (-16, 15)}
"""Corners of the box, by the number of dimensions."""

Fault = tuple[str, str]
"""A field of `TensorMap`, and what is wrong with it."""


def faults(tensor: TensorMap) -> Iterator[Fault]:
    """Everything that keeps a tensor map from being made; nothing if it can be."""
    rank = len(tensor.shape)
    fewest = 1 if tensor.im2col is None else min(_OFFSETS)
    if not fewest <= rank <= _MOST_DIMENSIONS:
        yield "shape", f"{rank} dimensions, {fewest} to {_MOST_DIMENSIONS} are possible"
        return  # the other fields have no dimensions to belong to
    if tensor.element_bytes not in _ELEMENT_BYTES:
        yield "element_bytes", f"{tensor.element_bytes}, possible are {_ELEMENT_BYTES}"
        return
    if tensor.to_tf32 and tensor.element_bytes != _FP32_BYTES:
        yield "to_tf32", f"elements of {tensor.element_bytes} bytes, fp32 has {_FP32_BYTES}"
    yield from chain(_memory(tensor, rank), _box(tensor, rank))
    if tensor.im2col is not None:
        yield from _im2col(tensor, tensor.im2col, rank)


def reach(tensor: TensorMap) -> int:
    """Bytes from the tensor's address to the end of its last element."""
    outer = zip(tensor.shape[1:], tensor.strides, strict=True)
    return tensor.shape[0] * tensor.element_bytes + sum((n - 1) * step for n, step in outer)


def _memory(tensor: TensorMap, rank: int) -> Iterator[Fault]:
    if tensor.address % ALIGNMENT:
        yield "address", f"{tensor.address:#x} is no multiple of {ALIGNMENT} bytes"
    for extent in tensor.shape:
        if not 1 <= extent <= _MOST_EXTENT:
            yield "shape", f"{extent} is not within 1 to {_MOST_EXTENT}"
    if len(tensor.strides) != rank - 1:
        yield "strides", f"{len(tensor.strides)}, the dimensions but the innermost are {rank - 1}"
    for stride in tensor.strides:
        if stride % ALIGNMENT or not 0 < stride < _STRIDE_LIMIT:
            yield (
                "strides",
                f"{stride} bytes is no multiple of {ALIGNMENT} between 0 and {_STRIDE_LIMIT}",
            )


def _box(tensor: TensorMap, rank: int) -> Iterator[Fault]:
    limits = [_MOST_BOX] * rank if tensor.im2col is None else [_MOST_BOX, _MOST_PIXELS]
    if len(tensor.box) != len(limits):
        yield "box", f"{len(tensor.box)} extents, {len(limits)} are asked for"
        return
    for extent, limit in zip(tensor.box, limits, strict=True):
        if not 1 <= extent <= limit:
            yield "box", f"{extent} is not within 1 to {limit} elements"
    row = tensor.box[0] * tensor.element_bytes
    if row % ALIGNMENT:
        yield "box", f"a row of {row} bytes is no multiple of {ALIGNMENT}"
    if tensor.swizzle not in _SWIZZLES:
        yield "swizzle", f"{tensor.swizzle}, possible are {_SWIZZLES}"
    elif 0 < tensor.swizzle < row:
        yield "swizzle", f"{tensor.swizzle} bytes, a row of the box has {row}"


def _im2col(tensor: TensorMap, mode: Im2col, rank: int) -> Iterator[Fault]:
    low, high = _OFFSETS[rank]
    for name, values in (("lower", mode.lower), ("upper", mode.upper), ("steps", mode.steps)):
        if len(values) != rank - 2:
            yield f"im2col.{name}", f"{len(values)} numbers for {rank - 2} spatial dimensions"
            return
    for name, values in (("lower", mode.lower), ("upper", mode.upper)):
        for value in values:
            if not low <= value <= high:
                yield f"im2col.{name}", f"{value} is not within {low} to {high}"
    for step in mode.steps:
        if not 1 <= step <= _MOST_STEP:
            yield "im2col.steps", f"{step} is not within 1 to {_MOST_STEP}"
    for extent, first, last in zip(tensor.shape[1:-1], mode.lower, mode.upper, strict=True):
        if extent + last - first < 1:
            yield "im2col.upper", f"{last}: no pixel lies between it and {first} of {extent}"
