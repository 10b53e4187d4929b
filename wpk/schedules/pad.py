"""Borders added to a tensor, or cropped."""

from math import prod
from typing import ClassVar

from wpk.performance import Floats
from wpk.problems import Pad, PadMode
from wpk.schedules.streaming import narrow_access
from wpk.schedules.strided import (
    cpp_tensor,
    moved_bytes,
    vector_widths,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.unit import Bits, Enumerator, Member, Members, Type
from wpk.schedules.vector_template import Reads, VectorTemplate
from wpk.targets import Target

_AXES = 3  # of the kernel, besides the leading one


class PadTemplate(VectorTemplate[Pad]):
    """Every output element finds the input element that it shows."""

    name: ClassVar[str] = "pad"
    version: ClassVar[int] = 3
    problem_type = Pad

    def why_not(self, problem: Pad, target: Target) -> str | None:
        """Refuse a padded leading axis, more than four axes, and borders that ONNX forbids."""
        if len(problem.y_shape) > _AXES + 1:
            return f"{len(problem.y_shape)} axes, at most {_AXES + 1} are carried"
        if len(problem.y_shape) == 1 or problem.begin[0] or _leading_changes(problem):
            return "the leading axis is padded, or the only one"
        if problem.mode is not PadMode.CONSTANT and 0 in problem.x_shape:
            return f"an empty input has no elements to {problem.mode.value}"
        reason = why_unaddressable([problem.x], problem.x_shape)
        reason = reason or why_unaddressable([problem.y], problem.y_shape)
        return reason or why_unpaddable(problem.y, (_row(problem),))

    def _vectors(self, problem: Pad) -> tuple[int, ...]:
        row = _row(problem)
        extent = problem.y_shape[row] + problem.y.padding
        return vector_widths([problem.x, problem.y], row, extent)

    def _items(self, problem: Pad, vector: int) -> int:
        """Pieces of rows of y."""
        first, second, row = _order(problem)
        chunks = -(-(problem.y_shape[row] + problem.y.padding) // vector)
        return chunks * prod(problem.y_shape[axis] for axis in (first, second) if axis is not None)

    def _reads(self, problem: Pad, vector: Floats, threads: Floats, blocks: Floats) -> Reads:
        """Every input once."""
        shape = (problem.leading.value, *problem.x_shape[1:])
        moved = moved_bytes(problem.x, shape, _row(problem))
        return Reads(
            flops=float(problem.leading.value * self._items(problem, 1)),
            loads=moved * narrow_access(vector, problem.x.dtype.bytes),
            registers=24.0 + 2 * vector,
        )

    def _members(self, problem: Pad) -> Members:
        first, second, row = _order(problem)
        order = (0, first, second, row)
        constants: dict[str, Member] = {
            "rowPadding": problem.y.padding,
            "value": Bits(problem.value),
        }
        for label, axis in (("1", first), ("2", second), ("Row", row)):
            constants[f"x{label}"] = 1 if axis is None else problem.x_shape[axis]
            constants[f"y{label}"] = 1 if axis is None else problem.y_shape[axis]
            constants[f"begin{label}"] = 0 if axis is None else problem.begin[axis]
        return {
            "X": Type(cpp_tensor(problem.x, order)),
            "Y": Type(cpp_tensor(problem.y, order)),
            "mode": Enumerator(f"wpk::PadMode::{problem.mode.value}"),
            **constants,
        }


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
