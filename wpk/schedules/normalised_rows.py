"""What templates of norms and softmax have in common: what they carry, say of a problem, and move (norm_row.cuh)."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from wpk.expression import cpp_type, flops
from wpk.performance import Columns, Floats
from wpk.problems import Normalisation, NormKind
from wpk.schedules.streaming import narrow_access
from wpk.schedules.strided import (
    constants_mask,
    cpp_tensor,
    cpp_tensors,
    is_wide,
    moved_bytes,
    stored_bytes,
    vector_widths,
    why_operand_missing,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.unit import Enumerator, Member, Type, fp32_bits

MAX_CACHED = 64
"""Words of a row that a thread may keep."""

PASSES = {NormKind.SOFTMAX: 3, NormKind.LOG_SOFTMAX: 3, NormKind.LAYER: 3, NormKind.RMS: 2}
"""How often a kernel that keeps nothing looks at a row; all but the last give a statistic."""

_OUTER_AXES = 3
_KINDS = {
    NormKind.SOFTMAX: "softmax",
    NormKind.LOG_SOFTMAX: "logSoftmax",
    NormKind.LAYER: "layer",
    NormKind.RMS: "rms",
}
_VALUE_FLOPS = {NormKind.SOFTMAX: 20, NormKind.LOG_SOFTMAX: 12, NormKind.LAYER: 6, NormKind.RMS: 3}
"""Operations an element as the kernel does them: softmax takes the exponential twice."""


@dataclass(frozen=True)
class Moved:
    """What schedules move, in bytes of narrow accesses.

    Attributes:
        read: By a pass over all rows.
        tail: Of the epilogue's operands.
    """

    read: Floats
    tail: Floats


@dataclass(frozen=True)
class NormalisedRows:
    """A problem as kernels see it: rows, or the lines of each, along its last axis."""

    problem: Normalisation

    @property
    def column_axis(self) -> int:
        """The axis along which a line lies."""
        return len(self.problem.outer) + len(self.problem.row) - 1

    @property
    def count(self) -> int:
        """Rows."""
        return self.problem.leading.value * prod(self.problem.outer[1:])

    @cached_property
    def outer(self) -> tuple[int | None, int | None]:
        """The two axes besides the leading one, the inner one last; None where there is none."""
        axes = range(1, len(self.problem.outer))
        first, second = ([None] * (_OUTER_AXES - 1) + list(axes))[-2:]
        return first, second

    @property
    def outer_extents(self) -> tuple[int, int]:
        """Their extents."""
        first, second = (1 if axis is None else self.problem.outer[axis] for axis in self.outer)
        return first, second

    def why_not(self) -> str | None:
        """Refuse too many axes, empty rows, 64-bit offsets and padding not at a line's end."""
        problem = self.problem
        if len(problem.outer) > _OUTER_AXES:
            return f"{len(problem.outer)} outer axes, at most {_OUTER_AXES} are carried"
        if problem.reduction == 0:
            return "rows are empty"
        tensors = [*problem.inputs, problem.y, *problem.epilogue.operands]
        shape = (1, *problem.outer[1:], *problem.row)
        reason = why_operand_missing(problem) or why_unaddressable(tensors, shape)
        return reason or why_unpaddable(problem.y, (self.column_axis,))

    def vectors(self) -> tuple[int, ...]:
        """Widths of a vector that all tensors allow."""
        problem = self.problem
        tensors = [*problem.inputs, problem.y, *problem.epilogue.operands]
        return vector_widths(tensors, self.column_axis, problem.cols + problem.y.padding)

    def moved(self, columns: Columns) -> Moved:
        """Return what schedules of the vectors in ``columns`` move."""
        problem, vector = self.problem, columns["vector"].astype(float)
        shape = (problem.leading.value, *problem.outer[1:], *problem.row)
        read, tail = (
            sum(
                moved_bytes(t, shape, self.column_axis) * narrow_access(vector, t.dtype.bytes)
                for t in tensors
            )
            + np.zeros_like(vector)
            for tensors in (problem.inputs, problem.epilogue.operands)
        )
        return Moved(read, tail)

    @property
    def stored(self) -> float:
        """What storing all rows costs, their padding included, in bytes (`stored_bytes`)."""
        problem = self.problem
        shape = (problem.leading.value, *problem.outer[1:], *problem.row)
        return stored_bytes(problem.y, shape, self.column_axis)

    def value_flops(self, passes: Floats) -> Floats:
        """Return the operations an element whose prologue so many passes compute."""
        problem = self.problem
        own = _VALUE_FLOPS[problem.kind] + flops(problem.epilogue.expression)
        every: Floats = own + passes * flops(problem.prologue)
        return every

    def members(self, *line: int | None) -> dict[str, Member]:
        """Return what units of all templates say.

        Args:
            line: The axes of a row, as tensors have them in order behind the outer ones.
        """
        problem, order = self.problem, (0, *self.outer, *line)
        o1, o2 = self.outer_extents
        operands = problem.epilogue.operands
        return {
            "Inputs": Type(cpp_tensors(problem.inputs, order)),
            "Y": Type(cpp_tensor(problem.y, order)),
            "Operands": Type(cpp_tensors(operands, order)),
            "operand_constants": constants_mask(operands),
            "Prologue": Type(cpp_type(problem.prologue)),
            "Epilogue": Type(cpp_type(problem.epilogue.expression)),
            "kind": Enumerator(f"wpk::NormKind::{_KINDS[problem.kind]}"),
            "o1": o1,
            "o2": o2,
            "columns": problem.cols,
            "rowPadding": problem.y.padding,
            "epsilon": fp32_bits(problem.epsilon),
            "wide": is_wide(problem.leading, o1 * o2),
        }
