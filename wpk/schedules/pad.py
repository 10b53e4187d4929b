"""Borders added to a tensor, or cropped."""

from typing import ClassVar

from wpk.performance import Columns, Work
from wpk.problems import Pad, PadMode
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
from wpk.schedules.unit import Enumerator, Type, fp32_bits
from wpk.targets import Target

_AXES = 3  # of the kernel, besides the leading one


class PadTemplate(SingleKernelTemplate[Pad, VectorSchedule]):
    """Every output element finds the input element that it shows."""

    name: ClassVar[str] = "pad"
    version: ClassVar[int] = 2
    problem_type = Pad
    schedule_type = VectorSchedule

    def why_not(self, problem: Pad, target: Target) -> str | None:
        """Refuses a padded leading axis, more than four axes, and borders that ONNX forbids."""
        if len(problem.y_shape) > _AXES + 1:
            return f"{len(problem.y_shape)} axes, at most {_AXES + 1} are carried"
        if len(problem.y_shape) == 1 or problem.begin[0] or _leading_changes(problem):
            return "the leading axis is padded, or the only one"
        if problem.mode is not PadMode.CONSTANT and 0 in problem.x_shape:
            return f"an empty input has no elements to {problem.mode.value}"
        reason = why_unaddressable([problem.x], problem.x_shape)
        reason = reason or why_unaddressable([problem.y], problem.y_shape)
        return reason or why_unpaddable(problem.y, (_row(problem),))

    def _axes(self, problem: Pad, target: Target) -> dict[str, tuple[int, ...]]:
        """Elements a thread, threads a block."""
        row = _row(problem)
        extent = problem.y_shape[row] + problem.y.padding
        return {
            "vector": vector_widths([problem.x, problem.y], row, extent),
            "threads": (256, 128, 64, 512),
        }

    def work(self, problem: Pad, columns: Columns, target: Target) -> Work:
        """Every input and every output once."""
        row = _row(problem)
        total = problem.leading.value * _per_leading(problem, 1)
        vector, threads = columns["vector"].astype(float), columns["threads"].astype(float)
        shape = (problem.leading.value, *problem.x_shape[1:])
        return Stream(
            element_bytes=problem.x.dtype.bytes,
            flops=float(total),
            loads=moved_bytes(problem.x, shape, row) * narrow_access(vector, problem.x.dtype.bytes),
            stores=total * problem.y.dtype.bytes,
            blocks=ceil_divide(total, vector * threads),
            threads=threads,
            registers=24.0 + 2 * vector,
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: Pad, schedule: VectorSchedule) -> KernelPlan:
        """Items are runs of a row of y."""
        first, second, row = _order(problem)
        order = (0, first, second, row)
        items = _per_leading(problem, schedule.vector)
        constants = {"rowPadding": problem.y.padding, "value": fp32_bits(problem.value)}
        for label, axis in (("1", first), ("2", second), ("Row", row)):
            constants[f"x{label}"] = 1 if axis is None else problem.x_shape[axis]
            constants[f"y{label}"] = 1 if axis is None else problem.y_shape[axis]
            constants[f"begin{label}"] = 0 if axis is None else problem.begin[axis]
        return KernelPlan(
            members={
                "X": Type(cpp_tensor(problem.x, order)),
                "Y": Type(cpp_tensor(problem.y, order)),
                "mode": Enumerator(f"wpk::PadMode::{problem.mode.value}"),
                **constants,
                "wide": is_wide(problem.leading, items),
            },
            inputs=1,
            leading=problem.leading,
            grid=linear_grid(problem.leading, items, schedule.threads),
            threads=schedule.threads,
        )


def _leading_changes(problem: Pad) -> bool:
    return problem.x_shape[0] != problem.y_shape[0]


def _row(problem: Pad) -> int:
    """The axis that threads walk: the one along which y is contiguous, else the last."""
    axes = range(1, len(problem.y_shape))
    unit = [axis for axis in axes if problem.y.strides[axis] == 1]
    return max(unit, key=lambda axis: problem.y_shape[axis], default=len(problem.y_shape) - 1)


def _order(problem: Pad) -> tuple[int | None, int | None, int]:
    row = _row(problem)
    others = [axis for axis in range(1, len(problem.y_shape)) if axis != row]
    first, second = ([None] * (_AXES - 1) + others)[-2:]
    return first, second, row


def _per_leading(problem: Pad, vector: int) -> int:
    first, second, row = _order(problem)
    chunks = -(-(problem.y_shape[row] + problem.y.padding) // vector)
    for axis in (first, second):
        chunks *= 1 if axis is None else problem.y_shape[axis]
    return chunks
