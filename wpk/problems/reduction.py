"""Reduction of some axes, with element-wise work before and after."""

from dataclasses import dataclass
from enum import StrEnum
from math import prod

from wpk.expression import Expression
from wpk.extent import Extent
from wpk.problems.operand import Epilogue, Tensor


class ReduceKind(StrEnum):
    """The reduction."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


@dataclass(frozen=True)
class Reduction:
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
