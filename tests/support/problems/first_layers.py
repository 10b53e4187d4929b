"""Convolutions over images of few channels, as first layers are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from subjects.problems import convolution

from wpk.dtypes import DType, Precision
from wpk.problems import Convolution, Tensor


def channels_first(dtype: DType, c: int, h: int, w: int) -> Tensor:
    """An image as models give it."""
    return Tensor(dtype, (c * h * w, h * w, w, 1), alignment=dtype.bytes)


def first_layer(
    c: int = 3,
    k: int = 24,
    size: tuple[int, int] = (17, 21),
    filter: tuple[int, int] = (7, 7),
    stride: tuple[int, int] = (2, 2),
    pads: tuple[int, int, int, int] = (3, 3, 3, 3),
    precision: Precision = Precision.FP16,
    n: int = 2,
    x: Tensor | None = None,
    y_padding: int = 0,
) -> Convolution:
    """From channels first, fp32, to channels last; ``pads`` is (top, left, bottom, right)."""
    layer = convolution(
        *(c, k, size, filter),
        stride=stride,
        pads=pads,
        precision=precision,
        n=n,
        padding=(0, y_padding),
    )
    return replace(layer, x=x or channels_first(DType.FP32, c, *size))


CASES: dict[str, dict[str, Any]] = {
    "7x7, stride 2": {},
    "3x3": {"filter": (3, 3), "stride": (1, 1), "pads": (1, 1, 1, 1), "size": (9, 11)},
    "3x3, stride 2": {"filter": (3, 3), "pads": (0, 0, 1, 1), "size": (13, 18)},
    "no padding": {"filter": (3, 3), "stride": (1, 1), "pads": (0, 0, 0, 0), "size": (9, 19)},
    "5x4, stride 3": {"filter": (5, 4), "stride": (3, 3), "pads": (2, 0, 0, 3), "size": (20, 31)},
    "11x11, stride 4": {
        "filter": (11, 11),
        "stride": (4, 4),
        "pads": (2, 2, 2, 2),
        "size": (35, 39),
    },
    "strides apart": {"filter": (2, 5), "stride": (1, 2), "pads": (0, 2, 1, 2), "size": (6, 24)},
    "1x1": {"filter": (1, 1), "stride": (1, 1), "pads": (0, 0, 0, 0), "size": (5, 9)},
    "one channel": {"c": 1, "filter": (5, 5), "stride": (1, 1), "pads": (2, 2, 2, 2)},
    "two channels": {"c": 2, "filter": (3, 3), "pads": (1, 1, 1, 1)},
    "four channels": {"c": 4, "filter": (3, 3), "stride": (1, 1), "pads": (1, 1, 1, 1)},
    "one-dimensional": {"size": (1, 67), "filter": (1, 9), "stride": (1, 2), "pads": (0, 4, 0, 4)},
    "odd filters": {"k": 37, "filter": (3, 3), "y_padding": 3},
}
"""Odd ones."""
