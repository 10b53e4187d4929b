"""Elements read where an index tensor says."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar

import numpy as np

from wpk.dtypes import DType
from wpk.performance import Floats
from wpk.problems import IndexedRead, Tensor
from wpk.schedules.streaming import narrow_access, short_run
from wpk.schedules.strided import (
    cpp_tensor,
    vector_widths,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.unit import Members, Type, Wide
from wpk.schedules.vector_template import Reads, VectorTemplate
from wpk.targets import Target

INDEX_TYPES = (DType.INT32, DType.INT64)
_AXES = 4


class IndexedReadTemplate(VectorTemplate[IndexedRead]):
    """A thread reads the index of its elements, one of a row that shares it, and moves them exactly."""

    name: ClassVar[str] = "indexed_read"
    version: ClassVar[int] = 1
    problem_type = IndexedRead

    def why_not(self, problem: IndexedRead, target: Target) -> str | None:
        """Refuse strange index types, too many axes, and padding not along rows."""
        del target
        if problem.index.dtype not in INDEX_TYPES:
            return f"indices are {problem.index.dtype.value}; int32 and int64 are carried"
        if len(problem.shape) > _AXES:
            return f"{len(problem.shape)} axes, at most {_AXES} are carried"
        shape, picked = problem.shape, len(problem.sizes)
        reason = why_unaddressable([problem.data], (*shape, *(1 for _ in range(picked))))
        reason = reason or why_unaddressable([problem.index], (*shape, picked))
        reason = reason or why_unaddressable([problem.y], shape)
        return reason or why_unpaddable(problem.y, (len(shape) - 1,) if len(shape) > 1 else ())

    def _vectors(self, problem: IndexedRead) -> tuple[int, ...]:
        moved = [problem.data, problem.y] if _shares_index(problem) else [problem.index, problem.y]
        axis = len(problem.shape) - 1
        moved = [_row_of(tensor, axis) for tensor in moved]
        return vector_widths(moved, -1, _row(problem) + problem.y.padding)

    def _items(self, problem: IndexedRead, vector: int) -> int:
        """Pieces of rows."""
        *others, row = _inner(problem)
        return prod(others) * -(-(row + problem.y.padding) // vector)

    def _reads(
        self, problem: IndexedRead, vector: Floats, threads: Floats, blocks: Floats
    ) -> Reads:
        """Every element once, those without a neighbour a sector each; an index before it."""
        elements = float(problem.leading.value * prod(problem.shape[1:]))
        size, index = problem.data.dtype.bytes, problem.accesses()[0][1]
        run = vector if _shares_index(problem) else np.ones_like(vector)
        return Reads(
            flops=elements,
            loads=elements * _moved(problem, run) * narrow_access(run, size)
            + (index.distinct_bytes if index is not None else 0),
            registers=24.0 + 4 * vector,
            steps=2.0,
        )

    def _members(self, problem: IndexedRead) -> Members:
        order = _order(problem)
        first, second, row = _inner(problem)
        rank = len(problem.shape)
        return {
            "Data": Type(cpp_tensor(problem.data, order)),
            "Index": Type(cpp_tensor(problem.index, order)),
            "Y": Type(cpp_tensor(problem.y, order)),
            "Picked": picked_axes(problem.sizes, problem.data.strides[rank:]),
            "indexStep": Wide(problem.index.strides[rank]),
            "sharesIndex": _shares_index(problem),
            "o1": first,
            "o2": second,
            "row": row,
            "rowPadding": problem.y.padding,
        }


def picked_axes(sizes: Sequence[int], steps: Sequence[int]) -> Type:
    """The type by which kernels find the places that indices name.

    Args:
        sizes: Extents of the axes.
        steps: Elements between neighbours along them.
    """
    axes = zip(sizes, steps, strict=True)
    names = ", ".join(f"wpk::PickedAxis<{size}, {step}>" for size, step in axes)
    return Type(f"wpk::PickedAxes<{names}>")


def _shares_index(problem: IndexedRead) -> bool:
    """Whether all elements of a row have one index."""
    rank = len(problem.shape)
    return rank == 1 or problem.index.strides[rank - 1] == 0 or problem.shape[-1] == 1


def _moved(problem: IndexedRead, run: Floats) -> Floats:
    """Bytes that memory moves for an element, which has so many neighbours in a row of the data."""
    size, rank = problem.data.dtype.bytes, len(problem.shape)
    along = problem.shape[-1] if rank > 1 and problem.data.strides[rank - 1] == 1 else 1
    return size * short_run(np.maximum(run, float(along)), size)


def _row(problem: IndexedRead) -> int:
    return _inner(problem)[-1]


def _inner(problem: IndexedRead) -> tuple[int, int, int]:
    """The extents behind the leading one; those that are missing are 1, the outer ones first."""
    first, second, row = ((1,) * _AXES + problem.shape[1:])[-(_AXES - 1) :]
    return first, second, row


def _order(problem: IndexedRead) -> tuple[int | None, ...]:
    """The domain's axes as the kernel has them."""
    rank = len(problem.shape)
    return (0, *(None for _ in range(_AXES - rank)), *range(1, rank))


def _row_of(tensor: Tensor, axis: int) -> Tensor:
    """The tensor with the stride of a row alone; that of the leading axis is none."""
    stride = tensor.strides[axis] if axis else 0
    return Tensor(tensor.dtype, (stride,), 0, tensor.alignment)
