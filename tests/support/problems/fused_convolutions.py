"""Fused convolutions as problems, for tests of libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from subjects.problems import convolution

from wpk.dtypes import Precision
from wpk.expression import Acc, Apply, Expression, Operand, apply
from wpk.problems import Convolution, Epilogue, Tensor


def fused_convolution(
    precision: Precision = Precision.FP16,
    expression: Expression = Acc(),  # noqa: B008 - frozen
    **given: Any,
) -> Convolution:
    """3×3 over 64 channels of 14² with a bias as operand 0 and a residual as operand 1, as used."""
    plain = convolution(precision=precision, **{"n": 2, **given})
    used = 1 + max((int(leaf) for leaf in _operands(expression)), default=-1)
    operands = (Tensor(precision.storage, (0, 1, 0, 0)), plain.y)[:used]
    return replace(plain, epilogue=Epilogue(expression, operands))


def _operands(expression: Expression) -> Iterator[int]:
    match expression:
        case Operand(index):
            yield index
        case Apply(_, arguments):
            for argument in arguments:
                yield from _operands(argument)


BIAS = apply("Add", Acc(), Operand(0))
RESIDUAL = apply("Relu", apply("Add", BIAS, Operand(1)))

CONVOLUTIONS: dict[str, Callable[[Precision], Convolution]] = {
    "bare": lambda p: fused_convolution(p),
    "bias relu": lambda p: fused_convolution(p, apply("Relu", BIAS)),
    "bias residual relu": lambda p: fused_convolution(p, RESIDUAL),
    "stride 2": lambda p: fused_convolution(p, apply("Relu", BIAS), stride=2),
    "asymmetric": lambda p: fused_convolution(p, BIAS, pads=(0, 1, 1, 1)),
    "grouped": lambda p: fused_convolution(p, BIAS, groups=2),
    "dilated": lambda p: fused_convolution(p, BIAS, dilation=2),
}
