"""Convolution on the tensor cores: numbers on the emulator at odd shapes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue, Tensor
from wpk.schedules.conv_mma import ConvMma
from wpk.schedules.mma_tiles import MmaSchedule

TEMPLATE = ConvMma()
SCHEDULE = MmaSchedule(block_m=64, block_n=32, block_k=32, warps_m=2, warps_n=1, stages=3)
GELU: Expression = apply(
    "Mul",
    apply("Mul", Acc(), Scalar(0.5)),
    apply("Add", apply("Erf", apply("Mul", Acc(), Scalar(0.7071067811865476))), Scalar(1.0)),
)


def channels_last(dtype: DType, c: int, h: int, w: int, padding: int = 0) -> Tensor:
    pixel = c + padding
    alignment = next(a for a in (16, 8, 4, 2, 1) if pixel * dtype.bytes % a == 0)
    return Tensor(dtype, (h * w * pixel, 1, w * pixel, pixel), padding, alignment)


def channels_first(dtype: DType, c: int, h: int, w: int) -> Tensor:
    return Tensor(dtype, (c * h * w, h * w, w, 1), alignment=dtype.bytes)


def convolution(
    c: int = 16,
    k: int = 32,
    size: tuple[int, int] = (9, 7),
    filter: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (1, 1, 1, 1),
    groups: int = 1,
    precision: Precision = Precision.FP16,
    n: int = 3,
    transposed: bool = False,
    padding: tuple[int, int] = (0, 0),
) -> Convolution:
    """Channels-last throughout; ``pads`` is (top, left, bottom, right), ``padding`` of x and y."""
    spans = [d * (f - 1) + 1 for d, f in zip(dilation, filter, strict=True)]
    if transposed:
        ends = [(size[i] - 1) * stride[i] + spans[i] - pads[i] - pads[i + 2] for i in (0, 1)]
    else:
        ends = [(size[i] + pads[i] + pads[i + 2] - spans[i]) // stride[i] + 1 for i in (0, 1)]
    p, q = ends
    dtype = precision.storage
    x, y = channels_last(dtype, c, *size, padding[0]), channels_last(dtype, k, p, q, padding[1])
    return Convolution(
        precision=precision,
        n=Extent(n),
        c=c,
        h=size[0],
        w=size[1],
        k=k,
        p=p,
        q=q,
        filter=filter,
        stride=stride,
        dilation=dilation,
        pad=(pads[0], pads[1]),
        groups=groups,
        transposed=transposed,
        x=x,
        y=y,
        epilogue=Epilogue(),
    )


CASES: dict[str, dict[str, Any]] = {
    "3x3": {},
    "58 channels, padded": {"c": 58, "k": 58, "padding": (6, 6)},
    "58 channels, unpadded": {"c": 58, "k": 58},
    "odd channels": {"c": 5, "k": 7},
    "1x1": {"filter": (1, 1), "pads": (0, 0, 0, 0), "c": 24, "k": 40},
    "stride 2": {"stride": (2, 2), "size": (11, 8)},
    "dilated": {"dilation": (2, 3), "pads": (2, 3, 2, 3), "size": (8, 11)},
    "asymmetric": {"pads": (0, 2, 1, 0), "filter": (3, 2)},
    "grouped": {"groups": 4, "c": 32, "k": 64},
    "grouped by few": {"groups": 3, "c": 6, "k": 9},
    "transposed": {"transposed": True, "stride": (2, 2), "pads": (1, 1, 0, 0)},
    "transposed, grouped": {"transposed": True, "groups": 2, "stride": (2, 1), "dilation": (1, 2)},
    "one-dimensional": {"size": (1, 33), "filter": (1, 5), "pads": (0, 2, 0, 2)},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16, Precision.TF32])
def test_agrees_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(precision=precision, **CASES[case])
    element = precision.storage.bytes
    schedule = replace(SCHEDULE, block_k=64 // element)
    check_convolution(fast_execution, TEMPLATE, problem, schedule)
