"""Fused convolutions as problems, for tests of libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Apply, Expression, Operand, apply
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue, Tensor


def channels_last(dtype: DType, c: int, h: int, w: int) -> Tensor:
    return Tensor(dtype, (h * w * c, 1, w * c, c))


def fused_convolution(
    precision: Precision = Precision.FP16,
    expression: Expression = Acc(),  # noqa: B008 - frozen
    **changes: Any,
) -> Convolution:
    """3×3 over 64 channels of 14² with a bias as operand 0 and a residual as operand 1, as used."""
    given: dict[str, Any] = {
        "n": 2,
        "c": 64,
        "h": 14,
        "w": 14,
        "k": 64,
        "p": 14,
        "q": 14,
        "filter": (3, 3),
        "stride": (1, 1),
        "dilation": (1, 1),
        "pad": (1, 1),
        "groups": 1,
        "transposed": False,
        **changes,
    }
    given["n"] = Extent(given["n"])
    dtype = precision.storage
    y = channels_last(dtype, given["k"], given["p"], given["q"])
    used = 1 + max((int(leaf) for leaf in _operands(expression)), default=-1)
    operands = (Tensor(dtype, (0, 1, 0, 0)), y)[:used]
    x = channels_last(dtype, given["c"], given["h"], given["w"])
    return Convolution(
        precision=precision, x=x, y=y, epilogue=Epilogue(expression, operands), **given
    )


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
    "stride 2": lambda p: fused_convolution(p, apply("Relu", BIAS), p=7, q=7, stride=(2, 2)),
    "asymmetric": lambda p: fused_convolution(p, BIAS, p=13, q=14, pad=(0, 1)),
    "grouped": lambda p: fused_convolution(p, BIAS, groups=2),
    "dilated": lambda p: fused_convolution(p, BIAS, dilation=(2, 2), pad=(2, 2)),
}
