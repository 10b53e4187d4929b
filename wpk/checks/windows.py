"""Where the windows of convolutions and pools lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SAME = ("SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class WindowAxis:
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

    @property
    def span(self) -> int:
        """The elements from the first tap of a window to its last."""
        return (self.taps - 1) * self.dilation + 1

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


def window_axes(sizes: Sequence[int], taps: Sequence[int], **attributes: Any) -> list[WindowAxis]:
    """Return the windows along each axis of space.

    Args:
        sizes: The extents of space.
        taps: The taps of a window along each axis.
        attributes: Those of ONNX's Conv, or of one of its pools.
    """
    rank, auto_pad, ceil = len(sizes), attributes["auto_pad"], bool(attributes.get("ceil_mode", 0))
    pads = list(attributes["pads"] or [0] * 2 * rank)
    strides, dilations = (attributes[name] or [1] * rank for name in ("strides", "dilations"))
    along = zip(sizes, taps, strides, dilations, pads[:rank], pads[rank:], strict=True)
    return [_axis(n, f, s, d, (b, e), auto_pad, ceil=ceil) for n, f, s, d, b, e in along]


def _axis(
    size: int,
    taps: int,
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    auto_pad: str,
    *,
    ceil: bool,
) -> WindowAxis:
    """Windows along one axis; with ``ceil`` the last one may reach beyond the padding behind."""
    begin, end = (0, 0) if auto_pad == "VALID" else pads
    span = (taps - 1) * dilation + 1
    if auto_pad in SAME:
        count = -(-size // stride)
        total = max(0, (count - 1) * stride + span - size)
        begin = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
    else:
        room = size + begin + end - span
        count = (-(-room // stride) if ceil else room // stride) + 1
        if ceil and (count - 1) * stride >= size + begin:
            count -= 1  # a window does not start in the padding behind
    if auto_pad != "NOTSET":
        end = span  # no window reaches further
    return WindowAxis(size, taps, stride, dilation, count, begin, end)
