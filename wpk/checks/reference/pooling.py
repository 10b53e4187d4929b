"""Pools in float64, all windows of a tap at once; onnx's own go window by window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from wpk.checks.windows import WindowAxis, window_axes


class MaxPool(OpRun):
    """Maximum over windows; onnx 1.23's leaves out NaN and fails where nothing else is in a window.

    NaN propagates, as in PyTorch: ONNX does not say, and ONNX Runtime's answer depends on where in the
    window it lies. A window that lies all in the padding has the lowest fp32 number, as in ONNX
    Runtime. One output; attributes as ONNX's MaxPool.
    """

    def _run(self, x: Any, kernel_shape: Any, **attributes: Any) -> tuple[Any, ...]:
        axes = window_axes(x.shape[2:], kernel_shape, **attributes)
        y: Any = np.full((*x.shape[:2], *(axis.count for axis in axes)), -np.inf, x.dtype)
        filled = np.zeros(y.shape[2:], bool)
        for read, written in _taps(axes):
            out = y[(..., *written)]
            np.maximum(out, x[(..., *read)], out=out)
            filled[written] = True
        y[..., ~filled] = np.finfo(np.float32).min
        if len(self.onnx_node.output) < 2:
            return (y,)
        return (y, _places(x, axes, y, attributes["storage_order"]))


def _places(x: Any, axes: Sequence[WindowAxis], y: Any, storage_order: int) -> Any:
    """The flat index of each maximum, the first one of equals, or of NaN; -1 where a window has none."""
    space = x.shape[2:]
    flat = np.arange(np.prod(space)).reshape(space, order="F" if storage_order else "C")
    planes = np.arange(np.prod(x.shape[:2])).reshape(*x.shape[:2], *(1,) * len(space))
    found: Any = np.full(y.shape, -1, np.int64)
    for read, written in _taps(axes):
        out, tap, largest = found[(..., *written)], x[(..., *read)], y[(..., *written)]
        here = (tap == largest) | (np.isnan(tap) & np.isnan(largest))
        np.copyto(out, flat[read] + planes * flat.size, where=here & (out < 0))
    return found


def undecided_places(x: Any, error: Any, kernel_shape: Any, **attributes: Any) -> Any:
    """Whether errors let another element of a window be its largest: any may be that reaches what all must."""
    axes = window_axes(x.shape[2:], kernel_shape, **attributes)
    shape = (*x.shape[:2], *(axis.count for axis in axes))
    least: Any = np.full(shape, -np.inf)
    for read, written in _taps(axes):
        out = least[(..., *written)]
        np.fmax(out, (x - error)[(..., *read)], out=out)
    reaching: Any = np.zeros(shape, int)
    wrong: Any = np.zeros(shape, bool)
    for read, written in _taps(axes):
        here = (x + error)[(..., *read)] >= least[(..., *written)]
        reaching[(..., *written)] += here
        wrong[(..., *written)] |= here & (error[(..., *read)] > 0)
    return (reaching > 1) & wrong


class GlobalMaxPool(OpRun):
    """Maximum of each channel; onnx 1.23's is right for images alone."""

    def _run(self, x: Any) -> tuple[Any]:
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class AveragePool(OpRun):
    """Average over windows. Attributes as ONNX's AveragePool.

    What ceil mode adds behind the padding is never counted. A window that lies all in padding which is
    not counted either has 0, as in ONNX Runtime.
    """

    def _run(self, x: Any, kernel_shape: Any, **attributes: Any) -> tuple[Any]:
        axes = window_axes(x.shape[2:], kernel_shape, **attributes)
        y: Any = np.zeros((*x.shape[:2], *(axis.count for axis in axes)), x.dtype)
        for read, written in _taps(axes):
            y[(..., *written)] += x[(..., *read)]
        counts = np.ones((), x.dtype)
        for axis in axes:
            counts = np.multiply.outer(
                counts, axis.counted(padding=bool(attributes["count_include_pad"]))
            )
        y /= np.maximum(counts, 1)
        return (y,)


def _taps(axes: Sequence[WindowAxis]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield for each tap the elements that it reads along each axis, and the windows to which they belong."""
    for place in np.ndindex(*(axis.taps for axis in axes)):
        sides = [axis.tap(tap) for axis, tap in zip(axes, place, strict=True)]
        yield tuple(read for read, _ in sides), tuple(written for _, written in sides)
