"""Layers of every shape that the templates of warpgroups take, dense or padded, with bias, residual and ReLU."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import ClampedConvolution, Convolution, Epilogue, Matmul, Tensor
from wpk.schedules.wgmma.tiles import WgmmaSchedule

TAIL = apply("Relu", apply("Add", apply("Add", Acc(), Operand(0)), Operand(1)))
BIAS = Tensor(DType.FP32, (0, 1, 0, 0))

TAPS: dict[str, dict[str, Any]] = {
    "7x7": {},
    "three of 7x7": {"n": 3},
    "14x14": {"size": (14, 14), "c": 128},
    "three of 5x9": {"size": (5, 9), "n": 3, "k": 72},
    "stride 2": {"size": (11, 8), "stride": (2, 2)},
    "asymmetric": {"size": (6, 9), "filter": (3, 2), "pads": (0, 2, 1, 0)},
    "dilated": {"size": (9, 11), "dilation": (2, 3), "pads": (2, 3, 2, 3)},
    "24 channels": {"c": 24, "k": 40},
    "136 channels": {"c": 136},
    "58 channels, padded": {"c": 58, "padding": 6},
    "one image": {"one_image": True},
    "one-dimensional": {"size": (1, 90), "filter": (1, 5), "pads": (0, 2, 0, 2)},
}
"""Of `convolution`: layers of several taps."""


def at(schedule: WgmmaSchedule, precision: Precision) -> WgmmaSchedule:
    """The same boxes of another precision."""
    return replace(schedule, block_k=schedule.block_k * 2 // precision.storage.bytes)


def image(dtype: DType, c: int, h: int, w: int, padding: int = 0) -> Tensor:
    pixel = c + padding
    alignment = next(a for a in (16, 8, 4, 2) if pixel * dtype.bytes % a == 0)
    return Tensor(dtype, (h * w * pixel, 1, w * pixel, pixel), padding, alignment)


def convolution(
    c: int = 64,
    k: int = 64,
    size: tuple[int, int] = (7, 7),
    filter: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (1, 1, 1, 1),
    dilation: tuple[int, int] = (1, 1),
    n: int = 1,
    precision: Precision = Precision.FP16,
    padding: int = 0,
    one_image: bool = False,
) -> Convolution:
    """With bias, residual and ReLU; ``pads`` is (top, left, bottom, right), ``padding`` of x.

    One image needs no stride from image to image.
    """
    spans = [d * (f - 1) + 1 for d, f in zip(dilation, filter, strict=True)]
    p, q = ((size[i] + pads[i] + pads[i + 2] - spans[i]) // stride[i] + 1 for i in (0, 1))
    x, y = image(precision.storage, c, *size, padding), image(precision.storage, k, p, q)
    if one_image:
        x = replace(x, strides=(0, *x.strides[1:]))
    return Convolution(
        *(precision, Extent(n), c, *size, k, p, q, filter, stride, dilation, pads[:2]),
        *(1, False, x, y, Epilogue(TAIL, (BIAS, y))),
    )


def matmul(
    m: int, n: int, k: int, *, constant: bool = True, precision: Precision = Precision.FP16
) -> Matmul:
    """With bias, residual and ReLU; a ``b`` that is not constant is transposed in memory."""

    def rows(columns: int) -> Tensor:
        size = precision.storage.bytes
        alignment = next(a for a in (16, 8, 4, 2) if columns * size % a == 0)
        return Tensor(precision.storage, (0, 0, columns, 1), alignment=alignment)

    b = rows(n) if constant else Tensor(precision.storage, (0, 0, 1, k))
    epilogue = Epilogue(TAIL, (Tensor(DType.FP32, (0, 0, 0, 1)), rows(n)))
    sizes = ((Extent(1), 1), Extent(m), n, k)
    return Matmul(precision, *sizes, rows(k), b, constant, rows(n), epilogue)


def across(m: int, n: int, k: int, batch: tuple[int, int] = (1, 1)) -> Matmul:
    """Matrices whose ``b`` lies across the reduction, without an epilogue."""
    sizes = ((m, k), (k, n), (m, n))
    images, heads = batch
    a, b, y = (
        Tensor(DType.FP16, (heads * r * c, r * c, c, 1) if batch != (1, 1) else (0, 0, c, 1))
        for r, c in sizes
    )
    plain = matmul(m, n, k, constant=False)
    return replace(plain, a=a, b=b, y=y, epilogue=Epilogue(), batch=(Extent(images), heads))


def limited(plain: Convolution, *, upper: bool = True) -> ClampedConvolution:
    """The same of an input that is kept between limits, or above lower ones alone."""
    limit = Tensor(plain.x.dtype, (0, 1, 0, 0))
    return ClampedConvolution(**vars(plain), lower=limit, upper=limit if upper else None)


def in_precisions(cases: Iterable[Any], precisions: Sequence[Precision]) -> pytest.MarkDecorator:
    """Each case in fp16; the first of them in the other precisions, the rest of those where time is no matter."""
    slow = [pytest.mark.slow]
    values = [
        pytest.param(
            case, precision, marks=slow if index and precision is not Precision.FP16 else []
        )
        for index, case in enumerate(cases)
        for precision in precisions
    ]
    return pytest.mark.parametrize(("case", "precision"), values)
