"""Convolutions in float64: by matrix products and sums over taps, where onnx's own gathers every tap by index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx.reference.op_run import OpRun

from wpk.blocks import BLOCK, cores, on_cores
from wpk.checks.windows import SAME, window_axes

_LEAST_COLUMNS, _MOST_COLUMNS = 128, 512
"""Columns of a matrix product of windows: fewer read the weights too often, and more take memory that is fresh each time."""

_LEAST_PRODUCTS = 1 << 22
"""Products that pay for threads."""


class Conv(OpRun):
    """Convolution of any rank with groups. Attributes as ONNX's Conv."""

    def _run(self, x: Any, weight: Any, bias: Any = None, **attributes: Any) -> tuple[Any]:
        axes, group = window_axes(x.shape[2:], weight.shape[2:], **attributes), attributes["group"]
        rank, spans = len(axes), [axis.span for axis in axes]
        extents = [(axis.count - 1) * axis.stride + axis.span for axis in axes]
        padded = _padded(x, extents, [axis.begin for axis in axes])
        everywhere: Any = sliding_window_view(padded, spans, tuple(range(2, x.ndim)))
        steps = (*(axis.stride for axis in axes), *(axis.dilation for axis in axes))
        chosen = everywhere[(..., *(slice(None, None, step) for step in steps))]
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
    """A matrix product for each group and for some rows of a sample, on all cores.

    Windows are [N, C, kernel..., counts...], the weight is [M, C / group, kernel...].
    """
    batch, places = len(windows), windows.shape[weight.ndim :]
    taps, inner = prod(weight.shape[1:]), prod(places[1:])
    matrices = weight.reshape(group, len(weight) // group, taps)
    shape = (batch, *matrices.shape[:2], prod(places))
    y = np.empty(shape, np.result_type(windows, weight))
    each = min(_MOST_COLUMNS, max(_LEAST_COLUMNS, batch * shape[-1] // (2 * cores())))
    step = -(-each // max(1, inner))

    def multiply(part: tuple[int, int]) -> None:
        sample, first = part
        behind = min(first + step, places[0])
        rows = (*(slice(None),) * (weight.ndim - 1), slice(first, behind))
        columns = windows[sample][rows].reshape(group, taps, (behind - first) * inner)
        np.matmul(matrices, columns, out=y[sample, ..., first * inner : behind * inner])

    parts = product(range(batch), range(0, places[0], step))
    if y.size * taps < _LEAST_PRODUCTS:
        for part in parts:
            multiply(part)
    else:
        on_cores(parts, multiply)
    return y.reshape(batch, len(weight), *places)


def _each_channel(windows: Any, weight: Any) -> Any:
    """Sums over the taps of one channel each, on all cores: too little for a matrix product.

    Windows are [N, C, kernel..., counts...], the weight is [M, 1, kernel...]; C divides M.
    """
    batch, channels = windows.shape[:2]
    kernel, places = weight.shape[2:], windows.shape[weight.ndim :]
    factors = weight.reshape(channels, len(weight) // channels, *kernel)
    y = np.zeros((batch, *factors.shape[:2], *places), np.result_type(windows, weight))
    step = 1 + BLOCK // max(1, prod(places))

    def add(part: tuple[int, int]) -> None:
        sample, first = part
        some = slice(first, first + step)
        out = y[sample, some]
        term = np.empty_like(out)
        for tap in np.ndindex(*kernel):
            factor = factors[(some, slice(None), *tap)].reshape(*out.shape[:2], *(1,) * len(places))
            out += np.multiply(windows[(sample, some, *tap)][:, None], factor, out=term)

    on_cores(product(range(batch), range(0, channels, step)), add)
    return y.reshape(batch, len(weight), *places)


class ConvTranspose(OpRun):
    """Transposed convolution with groups; onnx 1.23's fails for more than one group.

    Every input element is added, times each filter tap, to the place that the tap moves it to; the
    padding is cut off at the end. Attributes as ONNX's ConvTranspose.
    """

    def _run(self, x: Any, weight: Any, bias: Any = None, **attributes: Any) -> tuple[Any]:
        rank, group = x.ndim - 2, attributes["group"]
        stride, dilation = (attributes[name] or [1] * rank for name in ("strides", "dilations"))
        full, kept = _extents(x.shape[2:], weight.shape[2:], stride, dilation, attributes)
        channels, per_group = x.shape[1] // group, weight.shape[1]
        y: Any = np.zeros((x.shape[0], per_group * group, *full), x.dtype)
        for g, tap in product(range(group), np.ndindex(*weight.shape[2:])):
            inputs = slice(g * channels, (g + 1) * channels)
            outputs = slice(g * per_group, (g + 1) * per_group)
            matrix = weight[(inputs, slice(None), *tap)]
            places = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilation, x.shape[2:], stride, strict=True)
            )
            moved = np.einsum("nc...,ck->nk...", x[:, inputs], matrix)
            y[(slice(None), outputs, *places)] += moved
        y = y[(..., *kept)]
        return (y if bias is None else y + bias.reshape(bias.size, *[1] * rank),)


def _extents(
    sizes: Sequence[int],
    taps: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    attributes: Mapping[str, Any],
) -> tuple[list[int], list[slice]]:
    """How far the taps reach along each axis, and the part of that which remains."""
    rank, auto_pad = len(sizes), attributes["auto_pad"]
    extra = attributes["output_padding"] or [0] * rank
    full = [
        (n - 1) * s + (f - 1) * d + 1 + e
        for n, s, f, d, e in zip(sizes, stride, taps, dilation, extra, strict=True)
    ]
    wanted = list(attributes["output_shape"] or [])[-rank:]
    if not wanted and auto_pad in SAME:
        wanted = [n * s for n, s in zip(sizes, stride, strict=True)]
    if not wanted:
        pads = list(attributes["pads"] or [0] * 2 * rank)
        ends = zip(full, pads[:rank], pads[rank:], strict=True)
        return full, [slice(begin, n - end) for n, begin, end in ends]
    full = [max(n, w) for n, w in zip(full, wanted, strict=True)]  # what no tap reaches is zero
    totals = [n - w for n, w in zip(full, wanted, strict=True)]
    halves = [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in totals]
    return full, [slice(half, half + w) for half, w in zip(halves, wanted, strict=True)]


class CausalConvWithState(OpRun):
    """A convolution over what was, channel by channel; onnx 1.23's activation is in fp32.

    Operands as ONNX's CausalConvWithState: input (batch, channels, length), weight (channels, 1, taps).
    """

    def _run(
        self, x: Any, weight: Any, bias: Any = None, past: Any = None, activation: str = "none"
    ) -> tuple[Any, Any]:
        taps, length = weight.shape[2], x.shape[2]
        before = np.zeros((*x.shape[:2], taps - 1), x.dtype) if past is None else past
        whole = np.concatenate([before, x], axis=2)
        y = sum(whole[:, :, i : i + length] * weight[:, :, i].T[..., None] for i in range(taps))
        y = y if bias is None else y + bias[:, None]
        if activation in ("silu", "swish"):
            with np.errstate(over="ignore"):
                y = y / (1.0 + np.exp(-y))
        return np.asarray(y, x.dtype), whole[:, :, length:]
