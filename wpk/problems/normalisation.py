"""Normalisation of rows: softmax, layer norm and their like, with element-wise work around it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import prod

from wpk.codec import MAY_LACK
from wpk.expression import Expression, Operand, flops
from wpk.extent import Extent
from wpk.problems.access import Access, Axes
from wpk.problems.expression_words import epilogue_words, formula
from wpk.problems.family import Family
from wpk.problems.odd_sizes import (
    BATCH,
    LEAST,
    above,
    all_of,
    odd_extent,
    ragged,
    resized_epilogue,
    unit_of,
)
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.phrases import by, sentence
from wpk.problems.problem import (
    Accesses,
    FieldExpression,
    Problem,
    Traffic,
    counted_axes,
    does_not_lead,
)
from wpk.problems.resized_layout import resized


class NormKind(StrEnum):
    """What happens to a row ``v``."""

    SOFTMAX = "softmax"  # exp(v - max v) / sum exp(v - max v)
    LOG_SOFTMAX = "log_softmax"  # v - max v - log(sum exp(v - max v))
    LAYER = "layer"  # (v - mean v) / sqrt(var v + epsilon)
    RMS = "rms"  # v / sqrt(mean v^2 + epsilon)


ELEMENT_OPERATIONS = {
    NormKind.SOFTMAX: 12,  # maximum, subtract, exp (8), sum, multiply
    NormKind.LOG_SOFTMAX: 12,  # maximum, subtract, exp (8), sum, subtract
    NormKind.LAYER: 5,  # sum, subtract, square and sum (2), multiply
    NormKind.RMS: 3,  # square and sum (2), multiply
}
"""Operations an element, special functions counted as in `wpk.expression_operations.OPERATIONS`."""

_NAMES = {"layer": "layer norm", "rms": "RMS norm", "log_softmax": "log-softmax"}

_FEW, _FEW_ACROSS = 5, 33
"""Rows along each outer axis but the first, in a problem's odd siblings, or a few more that keep its alignment; and where
neighbours in memory are of several rows, which are computed in tiles."""


@dataclass(frozen=True)
class Normalisation(Problem):
    """``y[o..., i] = epilogue(normalise over i of prologue(inputs[o..., i]))``.

    Operator inputs: ``*inputs, *epilogue.operands``. Output: ``y``. All domains: (outer..., cols)
    where ``outer[0]`` is the leading extent; at most three outer axes. ``Operand(j)`` in the
    prologue is ``inputs[j]``; in the epilogue ``epilogue.operands[j]`` (scale and shift of a layer
    norm are epilogue operands with stride 0 along the outer axes). Statistics are fp32; sums of a
    layer norm are taken in two passes (mean first), never as E[v^2] - E[v]^2.

    A row of several ``lines`` has two axes, and all domains are (outer..., lines, cols): the pixels and
    the channels of a group, say, which in channels-last images do not follow each other evenly.
    """

    kind: NormKind
    leading: Extent
    outer: tuple[int, ...]
    cols: int
    epsilon: float
    prologue: Expression
    inputs: tuple[Tensor, ...]
    y: Tensor
    epilogue: Epilogue
    lines: int = field(default=1, metadata=MAY_LACK)

    @property
    def reduction(self) -> int:
        """Elements of a row."""
        return self.lines * self.cols

    @property
    def row(self) -> tuple[int, ...]:
        """The axes of a row: its lines, where it has several, and its columns."""
        return (self.lines, self.cols) if self.lines > 1 else (self.cols,)

    carries_double = True
    family = Family.NORMALISATION

    def words(self) -> str:
        """See `Problem.words`."""
        of = "" if isinstance(self.prologue, Operand) else f" of {formula(self.prologue)}"
        rows = f"{prod(self.outer)} rows of {by(self.row)}"
        name = _NAMES.get(self.kind, self.kind)
        return sentence(f"{name}{of}, {rows}", epilogue_words(self.epilogue))

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        outer = (self.leading.value, *self.outer[1:])
        return {"cols": self.reduction} | counted_axes("outer", outer, 3)

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        domain: Axes = (self.leading, *self.outer[1:], *self.row)
        tensors = (*self.inputs, *self.epilogue.operands)
        return tuple(Access(each, domain) for each in tensors), Access(self.y, domain)

    def traffic(self) -> Traffic:
        """See `Problem.traffic`."""
        operations = ELEMENT_OPERATIONS[self.kind] + flops(self.prologue)
        elements = prod(self.accesses()[1].sizes)
        others = elements * (operations + flops(self.epilogue.expression))
        return Traffic(self.moved_bytes(), 0, others)

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        yield FieldExpression("prologue", self.prologue, len(self.inputs), follows=False)
        yield FieldExpression.of_epilogue(self.epilogue)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from does_not_lead("outer", self.outer, self.leading)
        if self.lines < 1:
            yield "lines", f"{self.lines} lines are no row"

    def _siblings(self) -> Iterator["Normalisation | None"]:
        column = len(self.outer) + len(self.row) - 1
        of_cols = unit_of(column, *self.inputs, self.y, *self.epilogue.operands)
        for cols in ragged(self.cols, of_cols, LEAST):
            yield self._resized(odd_extent(self.leading, BATCH if column > 1 else 5 * BATCH), cols)

    def _resized(self, leading: Extent, cols: int) -> "Normalisation | None":
        tensors = (*self.inputs, self.y, *self.epilogue.operands)
        few = []
        for axis, rows in enumerate(self.outer[1:], 1):
            across = any(each.strides[axis] == 1 for each in tensors)
            least = _FEW_ACROSS if across else _FEW
            few.append(rows if rows <= least else above(least, rows, unit_of(axis, *tensors)))
        outer = (leading.value, *few)
        shapes = (*self.outer, *self.row), (*outer, *self.row[:-1], cols)
        inputs = all_of([resized(each, *shapes, spread=True) for each in self.inputs])
        y, epilogue = (
            resized(self.y, *shapes, spread=True),
            resized_epilogue(self.epilogue, *shapes),
        )
        if inputs is None or y is None or epilogue is None:
            return None
        sizes = replace(self, leading=leading, outer=outer, cols=cols)
        return replace(sizes, inputs=inputs, y=y, epilogue=epilogue)
