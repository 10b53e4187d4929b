"""Pools in float64, all windows of a tap at once; onnx's own go window by window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from wpk.checks.windows import windows_along


class MaxPool(OpRun):
    """Maximum over windows; onnx 1.23's leaves out NaN and fails where nothing else is in a window.

    NaN propagates, as in PyTorch: ONNX does not say, and ONNX Runtime's answer depends on where in the
    window it lies. A window that lies all in the padding has the lowest fp32 number, as in ONNX
    Runtime. One output; attributes as ONNX's MaxPool.
    """

    op_domain = ""

    def _run(
        self,
        x: Any,
        auto_pad: str,
        ceil_mode: int,
        dilations: Any,
        kernel_shape: Any,
        pads: Any,
        storage_order: int,
        strides: Any,
    ) -> tuple[Any, ...]:
        axes = _axes(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
        y: Any = np.full((*x.shape[:2], *(axis.count for axis in axes)), -np.inf, x.dtype)
        filled = np.zeros(y.shape[2:], bool)
        for read, written in _taps(axes):
            out = y[(..., *written)]
            np.maximum(out, x[(..., *read)], out=out)
            filled[written] = True
        y[..., ~filled] = np.finfo(np.float32).min
        return (y,) if len(self.onnx_node.output) < 2 else (y, _places(x, axes, y, storage_order))


def _places(x: Any, axes: Sequence[_Axis], y: Any, storage_order: int) -> Any:
    """The flat index of each maximum, the first one of equals; -1 where a window has none."""
    space = x.shape[2:]
    flat = np.arange(np.prod(space)).reshape(space, order="F" if storage_order else "C")
    planes = np.arange(np.prod(x.shape[:2])).reshape(*x.shape[:2], *(1,) * len(space))
    found: Any = np.full(y.shape, -1, np.int64)
    for read, written in _taps(axes):
        out, here = found[(..., *written)], x[(..., *read)] == y[(..., *written)]
        np.copyto(out, flat[read] + planes * flat.size, where=here & (out < 0))
    return found


class GlobalMaxPool(OpRun):
    """Maximum of each channel; onnx 1.23's is right for images alone."""

    op_domain = ""

    def _run(self, x: Any) -> tuple[Any]:
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class AveragePool(OpRun):
    """Average over windows. Attributes as ONNX's AveragePool.

    What ceil mode adds behind the padding is never counted. A window that lies all in padding which is
    not counted either has 0, as in ONNX Runtime.
    """

    op_domain = ""

    def _run(
        self,
        x: Any,
        auto_pad: str,
        ceil_mode: int,
        count_include_pad: int,
        dilations: Any,
        kernel_shape: Any,
        pads: Any,
        strides: Any,
    ) -> tuple[Any]:
        axes = _axes(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
        y: Any = np.zeros((*x.shape[:2], *(axis.count for axis in axes)), x.dtype)
        for read, written in _taps(axes):
            y[(..., *written)] += x[(..., *read)]
        counts = np.ones((), x.dtype)
        for axis in axes:
            counts = np.multiply.outer(counts, axis.counted(padding=bool(count_include_pad)))
        y /= np.maximum(counts, 1)
        return (y,)


@dataclass(frozen=True)
class _Axis:
    """Windows along an axis.

    Attributes:
        size: The extent of the axis.
        taps: The taps of a window along it.
        stride: From one window to the next.
        dilation: From one tap to the next.
        count: The number of windows.
        begin: Padding before the axis.
        end: Padding behind it.
    """

    size: int
    taps: int
    stride: int
    dilation: int
    count: int
    begin: int
    end: int

    def tap(self, tap: int) -> tuple[slice, slice]:
        """Return the elements that a tap reads inside the axis, and the windows to which they belong."""
        start = tap * self.dilation - self.begin
        first = max(0, -(start // self.stride))
        behind = max(first, min(self.count, -((start - self.size) // self.stride)))
        read = start + first * self.stride
        return slice(read, read + (behind - first) * self.stride, self.stride), slice(first, behind)

    def counted(self, *, padding: bool) -> Any:
        """How many taps of each window lie inside the axis, or inside its padding too."""
        starts = np.arange(self.count)[:, None] * self.stride - self.begin
        at = starts + np.arange(self.taps) * self.dilation
        before, behind = (self.begin, self.end) if padding else (0, 0)
        return ((at >= -before) & (at < self.size + behind)).sum(axis=1)


def _axes(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Any,
    dilations: Any,
    pads: Any,
    auto_pad: str,
    ceil_mode: int,
) -> list[_Axis]:
    rank = len(sizes)
    given = list(pads or [0] * 2 * rank)
    found = []
    for size, taps, stride, dilation, before, behind in zip(
        sizes,
        kernel,
        strides or [1] * rank,
        dilations or [1] * rank,
        given[:rank],
        given[rank:],
        strict=True,
    ):
        span = (taps - 1) * dilation + 1
        count, begin = windows_along(
            size, span, stride, (before, behind), auto_pad, ceil=bool(ceil_mode)
        )
        if auto_pad != "NOTSET":
            behind = span  # no window reaches further
        found.append(_Axis(size, taps, stride, dilation, count, begin, behind))
    return found


def _taps(axes: Sequence[_Axis]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield for each tap the elements that it reads along each axis, and the windows to which they belong."""
    for place in np.ndindex(*(axis.taps for axis in axes)):
        sides = [axis.tap(tap) for axis, tap in zip(axes, place, strict=True)]
        yield tuple(read for read, _ in sides), tuple(written for _, written in sides)
