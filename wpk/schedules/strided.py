"""Tensors with strides, as kernel units name them and as the performance models count them."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from wpk.expression import Operand, leaves
from wpk.extent import Extent
from wpk.problems import Problem, Tensor

SECTOR_BYTES = 32
"""The least that global memory moves, whatever part of it is used."""

PART_STORE_BYTES = 88.0
"""What a store to a part of a sector costs, in bytes that L2 loads in that time: 55e9 such stores a second, from the
four reductions of ResNeSt whose outputs lie across their threads, measured on an H100 (53 to 61e9 behind what the rest of
the kernel takes); the 1.6 million of wav2vec2's first norm came to 46e9."""

_INDEX_LIMIT = 2**31


def cpp_tensor(tensor: Tensor, order: Sequence[int | None]) -> str:
    """Return ``wpk::Tensor<...>`` with the strides in this order of axes; None stands for an axis of extent 1."""
    strides = [0 if axis is None else tensor.strides[axis] for axis in order]
    head = f"{tensor.dtype.c_name}, {tensor.alignment}"
    return f"wpk::Tensor<{head}, {', '.join(map(str, strides))}>"


def cpp_tensors(tensors: Sequence[Tensor], order: Sequence[int | None]) -> str:
    """Return ``wpk::Tensors<...>`` of several tensors over one order of axes."""
    return f"wpk::Tensors<{', '.join(cpp_tensor(tensor, order) for tensor in tensors)}>"


def constants_mask(tensors: Sequence[Tensor]) -> int:
    """Return a bit for each tensor that no kernel writes."""
    return sum(tensor.constant << index for index, tensor in enumerate(tensors))


def with_strides(tensor: Tensor, strides: tuple[int, ...]) -> Tensor:
    """Return the tensor seen with other axes; its alignment falls where a new stride asks for it."""
    alignment = tensor.alignment
    for stride in strides:
        while stride not in (0, 1) and stride * tensor.dtype.bytes % alignment:
            alignment //= 2
    return replace(tensor, strides=strides, alignment=alignment)


def why_unaddressable(tensors: Sequence[Tensor], shape: Sequence[int]) -> str | None:
    """Say why 32-bit arithmetic cannot reach all elements at one leading index; None if it can."""
    for tensor in tensors:
        pairs = zip(shape[1:], tensor.strides[1:], strict=True)
        span = tensor.padding + sum((size - 1) * abs(stride) for size, stride in pairs)
        if span >= _INDEX_LIMIT or any(abs(s) >= _INDEX_LIMIT for s in tensor.strides[1:]):
            return f"a tensor spans {span} elements at one leading index, 2^31 - 1 are allowed"
    return None


def why_unpaddable(y: Tensor, axes: Sequence[int]) -> str | None:
    """Say why the zeros after y's rows cannot be written along one of ``axes``; None if they can."""
    if y.padding and not any(y.strides[axis] == 1 for axis in axes):
        return f"the output is padded by {y.padding} along an axis that this template does not pad"
    return None


def why_operand_missing(problem: Problem) -> str | None:
    """Say why one of its expressions asks for operands that the problem lacks; None if none does."""
    for each in problem.expressions():
        read = (leaf.index for leaf in leaves(each.expression) if isinstance(leaf, Operand))
        if (highest := max(read, default=-1)) >= each.operands:
            return f"the {each.field} reads operand {highest}, the problem has {each.operands}"
    return None


def is_wide(leading: Extent, per_leading: int) -> bool:
    """Return whether item numbers may exceed 32 bits: the run-time extent is unknown, or the product large."""
    return leading.free is not None or leading.value * per_leading >= _INDEX_LIMIT


def vector_widths(tensors: Sequence[Tensor], axis: int, extent: int) -> tuple[int, ...]:
    """Return elements along ``axis`` worth moving at once: powers of two, the widest that any tensor allows first."""
    widest = max((tensor.vector(axis) for tensor in tensors), default=1)
    widths = [width for width in (8, 4, 2, 1) if width <= widest and width < 2 * max(extent, 1)]
    return tuple(widths)


def moved_bytes(tensor: Tensor, shape: Sequence[int], fastest: int) -> float:
    """Count the bytes that global memory moves for all of a tensor when neighbouring threads walk ``fastest``.

    Elements that lie apart along that axis cost a sector each, at most.
    """
    axes = zip(shape, tensor.strides, strict=True)
    elements = prod(size for size, stride in axes if stride != 0)
    size = tensor.dtype.bytes
    step = abs(tensor.strides[fastest]) * size
    return float(elements * max(size, min(step, SECTOR_BYTES)))


def stored_bytes(tensor: Tensor, shape: Sequence[int], fastest: int) -> float:
    """Count what storing all of a tensor costs L2, in bytes, when neighbouring threads walk ``fastest``.

    Elements that lie apart along that axis are parts of sectors, each of which is a store of its own.
    """
    size = tensor.dtype.bytes
    elements = prod(shape) + tensor.padding * (prod(shape) // max(1, shape[fastest]))
    if tensor.strides[fastest] == 1:
        return float(elements * size)
    share = min(1.0, abs(tensor.strides[fastest]) * size / SECTOR_BYTES)
    return float(elements * max(size, PART_STORE_BYTES * share))
