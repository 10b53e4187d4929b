"""Reduction of some axes, with element-wise work before and after."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from wpk.expression import Expression, Operand, flops
from wpk.extent import Extent
from wpk.problems.access import Access, Axes
from wpk.problems.expression_words import epilogue_words, formula
from wpk.problems.family import Family
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.peculiar import few_words
from wpk.problems.phrases import sentence
from wpk.problems.problem import (
    Accesses,
    FieldExpression,
    Problem,
    Traffic,
    counted_axes,
    does_not_lead,
)
from wpk.problems.signs import TIMES


class ReduceKind(StrEnum):
    """The reduction."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


@dataclass(frozen=True)
class Reduction(Problem):
    """``y[o...] = epilogue(reduce over i... of prologue(inputs[o..., i...]))``.

    Operator inputs: ``*inputs, *epilogue.operands``. Output: ``y``. Domain of the inputs: (outer...,
    inner...) where ``outer[0]`` is the leading extent; of y and the epilogue's operands: (outer...).
    ``Operand(j)`` in the prologue is ``inputs[j]``; in the epilogue it is ``epilogue.operands[j]``.
    At most four outer and three inner axes. (L1, L2, square sums, log-sum-exp without overflow care
    are prologues and epilogues.)
    """

    kind: ReduceKind
    leading: Extent
    outer: tuple[int, ...]
    inner: tuple[int, ...]
    prologue: Expression
    inputs: tuple[Tensor, ...]
    y: Tensor
    epilogue: Epilogue

    @property
    def reduction(self) -> int:
        """Elements reduced for one output element."""
        return prod(self.inner)

    carries_double = True
    family = Family.REDUCTION

    def words(self) -> str:
        """See `Problem.words`."""
        of = "" if isinstance(self.prologue, Operand) else f" of {formula(self.prologue)}"
        sizes = f"{prod(self.outer)} {TIMES} {self.reduction} elements"
        return sentence(f"{self.kind}{of}, {sizes}", epilogue_words(self.epilogue))

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        outer = (self.leading.value, *self.outer[1:])
        return counted_axes("outer", outer, 4) | counted_axes("inner", self.inner, 3)

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        outer: Axes = (self.leading, *self.outer[1:])
        inputs = (Access(each, (*outer, *self.inner)) for each in self.inputs)
        operands = (Access(each, outer) for each in self.epilogue.operands)
        return (*inputs, *operands), Access(self.y, outer)

    def traffic(self) -> Traffic:
        """See `Problem.traffic`."""
        outputs = prod(self.accesses()[1].sizes)
        others = outputs * self.reduction * (1 + flops(self.prologue))
        others += outputs * flops(self.epilogue.expression)
        return Traffic(self.moved_bytes(), 0, others)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * self.reduction

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        yield FieldExpression("prologue", self.prologue, len(self.inputs), follows=False)
        yield FieldExpression.of_epilogue(self.epilogue)

    def peculiarities(self) -> Iterator[str]:
        """See `Problem.peculiarities`."""
        yield from few_words(
            prod(self.accesses()[1].sizes), f"results of {self.reduction} elements each"
        )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from does_not_lead("outer", self.outer, self.leading)
