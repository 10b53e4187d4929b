"""Rows of a tensor picked by an index tensor."""

from typing import ClassVar

from wpk.dtypes import DType
from wpk.performance import Floats
from wpk.problems import Gather
from wpk.schedules.streaming import narrow_access
from wpk.schedules.strided import (
    cpp_tensor,
    moved_bytes,
    vector_widths,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.unit import Members, Type
from wpk.schedules.vector_template import Reads, VectorTemplate
from wpk.targets import Target

_OUTER, _COUNT, _INNER = 0, 1, 2


class GatherTemplate(VectorTemplate[Gather]):
    """A thread reads its index, then moves a piece of the row; elements are moved exactly."""

    name: ClassVar[str] = "gather"
    version: ClassVar[int] = 2
    problem_type = Gather

    def why_not(self, problem: Gather, target: Target) -> str | None:
        """Refuse two free extents, strange index types, and padding not along rows."""
        if problem.index.dtype not in (DType.INT32, DType.INT64):
            return f"indices are {problem.index.dtype.value}; int32 and int64 are carried"
        if problem.count.free and problem.outer != type(problem.outer)(1):
            return "the number of indices is free, so outer must be 1"
        reason = why_unaddressable([problem.y], _y_shape(problem))
        return reason or why_unpaddable(problem.y, (_INNER,))

    def _vectors(self, problem: Gather) -> tuple[int, ...]:
        extent = problem.inner + problem.y.padding
        return vector_widths([problem.data, problem.y], _INNER, extent)

    def _items(self, problem: Gather, vector: int) -> int:
        """Pieces of rows."""
        other = problem.outer if problem.count.free else problem.count
        return other.value * -(-(problem.inner + problem.y.padding) // vector)

    def _reads(self, problem: Gather, vector: Floats, threads: Floats, blocks: Floats) -> Reads:
        """Every picked row once; two dependent loads."""
        size, rows = problem.data.dtype.bytes, problem.outer.value * problem.count.value
        shape = problem.accesses()[1].sizes
        moved = moved_bytes(problem.data, shape, _INNER)
        return Reads(
            flops=float(rows * (problem.inner + problem.y.padding)),
            loads=moved * narrow_access(vector, size) + rows * problem.index.dtype.bytes,
            registers=24.0 + 2 * vector,
            steps=2.0,
        )

    def _members(self, problem: Gather) -> Members:
        lead, other = (_COUNT, _OUTER) if problem.count.free else (_OUTER, _COUNT)
        # The axis that is picked from has a stride of its own: 64 bits, applied to the index.
        data = tuple(axis if axis != _COUNT else None for axis in (lead, other, _INNER))
        return {
            "Data": Type(cpp_tensor(problem.data, data)),
            "Index": Type(cpp_tensor(problem.index, (lead, other))),
            "Y": Type(cpp_tensor(problem.y, (lead, other, _INNER))),
            "axisSize": problem.axis_size,
            "axisStride": problem.data.strides[_COUNT],
            "other": (problem.outer if problem.count.free else problem.count).value,
            "inner": problem.inner,
            "rowPadding": problem.y.padding,
        }


def _y_shape(problem: Gather) -> tuple[int, int, int]:
    return (1, problem.count.value if not problem.count.free else 1, problem.inner)
