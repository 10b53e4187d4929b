"""Convolution in float64 by matrix products and sums over taps; onnx's own gathers every tap by index."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx.reference.op_run import OpRun

from wpk.blocks import BLOCK
from wpk.checks.windows import windows_along


class Conv(OpRun):
    """Convolution of any rank with groups. Attributes as ONNX's Conv."""

    op_domain = ""

    def _run(
        self,
        x: Any,
        weight: Any,
        bias: Any = None,
        *,
        auto_pad: str,
        dilations: Any,
        group: int,
        kernel_shape: Any,
        pads: Any,
        strides: Any,
    ) -> tuple[Any]:
        del kernel_shape  # the weight has it
        rank, kernel = x.ndim - 2, weight.shape[2:]
        stride, dilation = list(strides or [1] * rank), list(dilations or [1] * rank)
        given = list(pads or [0] * 2 * rank)
        spans = [(f - 1) * d + 1 for f, d in zip(kernel, dilation, strict=True)]
        axes = [
            windows_along(n, span, s, (b, e), auto_pad, ceil=False)
            for n, span, s, b, e in zip(
                x.shape[2:], spans, stride, given[:rank], given[rank:], strict=True
            )
        ]
        counts = [count for count, _ in axes]
        extents = [(n - 1) * s + span for n, s, span in zip(counts, stride, spans, strict=True)]
        padded = _padded(x, extents, [begin for _, begin in axes])
        everywhere: Any = sliding_window_view(padded, spans, tuple(range(2, x.ndim)))
        chosen = everywhere[(..., *(slice(None, None, each) for each in (*stride, *dilation)))]
        windows = chosen.transpose(0, 1, *range(x.ndim, x.ndim + rank), *range(2, x.ndim))
        by_channel = weight.shape[1] == 1 and group > 1
        y = _each_channel(windows, weight) if by_channel else _products(windows, weight, group)
        if bias is not None:
            y += bias.reshape(bias.size, *(1,) * rank)
        return (y,)


def _padded(x: Any, extents: Sequence[int], begins: Sequence[int]) -> Any:
    """The part of the input that windows read, with zeros around it."""
    if list(x.shape[2:]) == list(extents) and not any(begins):
        return x
    padded: Any = np.zeros((*x.shape[:2], *extents), x.dtype)
    sizes = [
        min(n, extent - begin)
        for n, extent, begin in zip(x.shape[2:], extents, begins, strict=True)
    ]
    inside: list[Any] = [
        slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)
    ]
    padded[(..., *inside)] = x[(..., *(slice(size) for size in sizes))]
    return padded


def _products(windows: Any, weight: Any, group: int) -> Any:
    """A matrix product for each sample and group.

    Args:
        windows: [N, C, kernel..., counts...]
        weight: [M, C / group, kernel...]
        group: Groups of channels.
    """
    batch, places = len(windows), windows.shape[weight.ndim :]
    taps, count = prod(weight.shape[1:]), prod(places)
    matrices = weight.reshape(group, len(weight) // group, taps)
    y = np.empty((batch, *matrices.shape[:2], count), np.result_type(windows, weight))
    for sample, out in zip(windows, y, strict=True):
        np.matmul(matrices, sample.reshape(group, taps, count), out=out)
    return y.reshape(batch, len(weight), *places)


def _each_channel(windows: Any, weight: Any) -> Any:
    """Sums over the taps of one channel each: too little for a matrix product.

    Args:
        windows: [N, C, kernel..., counts...]
        weight: [M, 1, kernel...]; C divides M.
    """
    batch, channels = windows.shape[:2]
    kernel, places = weight.shape[2:], windows.shape[weight.ndim :]
    factors = weight.reshape(channels, len(weight) // channels, *kernel)
    y = np.zeros((batch, *factors.shape[:2], *places), np.result_type(windows, weight))
    step = 1 + BLOCK // prod(places)
    for sample, first in product(range(batch), range(0, channels, step)):
        some = slice(first, first + step)
        out = y[sample, some]
        term = np.empty_like(out)
        for tap in np.ndindex(*kernel):
            factor = factors[(some, slice(None), *tap)].reshape(*out.shape[:2], *(1,) * len(places))
            out += np.multiply(windows[(sample, some, *tap)][:, None], factor, out=term)
    return y.reshape(batch, len(weight), *places)
