"""Rows of a tensor picked by an index tensor."""

from typing import ClassVar

from wpk.dtypes import DType
from wpk.performance import Columns, Work
from wpk.problems import Gather
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, VectorSchedule, ceil_divide, narrow_access
from wpk.schedules.strided import (
    cpp_tensor,
    is_wide,
    moved_bytes,
    vector_widths,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.unit import Type
from wpk.targets import Target

_OUTER, _COUNT, _INNER = 0, 1, 2


class GatherTemplate(SingleKernelTemplate[Gather, VectorSchedule]):
    """A thread reads its index, then moves a piece of the row; elements are moved exactly."""

    name: ClassVar[str] = "gather"
    version: ClassVar[int] = 2
    problem_type = Gather
    schedule_type = VectorSchedule

    def why_not(self, problem: Gather, target: Target) -> str | None:
        """Refuses two free extents, strange index types, and padding not along rows."""
        if problem.index.dtype not in (DType.INT32, DType.INT64):
            return f"indices are {problem.index.dtype.value}; int32 and int64 are carried"
        if problem.count.free and problem.outer != type(problem.outer)(1):
            return "the number of indices is free, so outer must be 1"
        reason = why_unaddressable([problem.y], _y_shape(problem))
        return reason or why_unpaddable(problem.y, (_INNER,))

    def _axes(self, problem: Gather, target: Target) -> dict[str, tuple[int, ...]]:
        """Elements a thread, threads a block."""
        extent = problem.inner + problem.y.padding
        return {
            "vector": vector_widths([problem.data, problem.y], _INNER, extent),
            "threads": (256, 128, 64, 512),
        }

    def work(self, problem: Gather, columns: Columns, target: Target) -> Work:
        """Every picked row once, every output once; two dependent loads."""
        shape = (problem.outer.value, problem.count.value, problem.inner)
        rows = problem.outer.value * problem.count.value
        total = rows * (problem.inner + problem.y.padding)
        vector, threads = columns["vector"].astype(float), columns["threads"].astype(float)
        moved = moved_bytes(problem.data, shape, _INNER)
        indices = rows * problem.index.dtype.bytes
        return Stream(
            element_bytes=problem.data.dtype.bytes,
            flops=float(total),
            loads=moved * narrow_access(vector, problem.data.dtype.bytes) + indices,
            stores=total * problem.y.dtype.bytes,
            blocks=ceil_divide(total, vector * threads),
            threads=threads,
            registers=24.0 + 2 * vector,
            steps=2.0,
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: Gather, schedule: VectorSchedule) -> KernelPlan:
        """Items are pieces of rows."""
        lead, other = (_COUNT, _OUTER) if problem.count.free else (_OUTER, _COUNT)
        extents = (problem.outer.value, problem.count.value)
        items = extents[other] * -(-(problem.inner + problem.y.padding) // schedule.vector)
        # The axis that is picked from has a stride of its own: 64 bits, applied to the index.
        data = tuple(axis if axis != _COUNT else None for axis in (lead, other, _INNER))
        return KernelPlan(
            members={
                "Data": Type(cpp_tensor(problem.data, data)),
                "Index": Type(cpp_tensor(problem.index, (lead, other))),
                "Y": Type(cpp_tensor(problem.y, (lead, other, _INNER))),
                "axisSize": problem.axis_size,
                "axisStride": problem.data.strides[_COUNT],
                "other": extents[other],
                "inner": problem.inner,
                "rowPadding": problem.y.padding,
                "wide": is_wide(problem.leading, items),
            },
            inputs=2,
            leading=problem.leading,
            grid=linear_grid(problem.leading, items, schedule.threads),
            threads=schedule.threads,
        )


def _y_shape(problem: Gather) -> tuple[int, int, int]:
    return (1, problem.count.value if not problem.count.free else 1, problem.inner)
