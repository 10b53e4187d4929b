"""Data movement that strides alone cannot say: gather, pad, resize."""

from dataclasses import dataclass
from enum import StrEnum

from wpk.extent import Extent
from wpk.problems.operand import Tensor


@dataclass(frozen=True)
class Gather:
    """``y[o..., j..., i...] = data[o..., index[j...], i...]``; negative indices count from the end.

    Flattened to three axes: ``outer`` x ``count`` x ``inner``. Operator inputs: ``data, index``.
    Domain of data: (outer, axis, inner); of index: (outer, count) (stride 0 on outer unless the
    leading extent is a batch of indices: then ``outer`` is 1 and ``count`` is the leading extent);
    of y: (outer, count, inner). An index outside [-axis_size, axis_size) reads as NaN or 0 so that
    a check cannot miss it.
    """

    outer: Extent
    axis_size: int
    count: Extent
    inner: int
    data: Tensor
    index: Tensor
    y: Tensor

    @property
    def leading(self) -> Extent:
        """The one extent that may be free."""
        return self.count if self.count.free else self.outer


class PadMode(StrEnum):
    """What lies outside."""

    CONSTANT = "constant"
    REFLECT = "reflect"
    EDGE = "edge"
    WRAP = "wrap"


@dataclass(frozen=True)
class Pad:
    """``y[d...] = x[d... - begin]`` inside, else by ``mode``.

    Operator inputs: ``x``. Domain of x: ``x_shape``; of y: ``y_shape``; up to four axes, axis 0 is
    the leading extent and is not padded. ``begin`` may be negative (cropping).
    """

    leading: Extent
    x_shape: tuple[int, ...]
    y_shape: tuple[int, ...]
    begin: tuple[int, ...]
    mode: PadMode
    value: float
    x: Tensor
    y: Tensor


class ResizeMode(StrEnum):
    """How a value between samples is found."""

    NEAREST = "nearest"
    LINEAR = "linear"


class ResizeCoordinates(StrEnum):
    """ONNX's ``coordinate_transformation_mode``."""

    HALF_PIXEL = "half_pixel"
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    ALIGN_CORNERS = "align_corners"
    ASYMMETRIC = "asymmetric"


class NearestMode(StrEnum):
    """ONNX's ``nearest_mode``."""

    ROUND_PREFER_FLOOR = "round_prefer_floor"
    ROUND_PREFER_CEIL = "round_prefer_ceil"
    FLOOR = "floor"
    CEIL = "ceil"


@dataclass(frozen=True)
class Resize:
    """Resampling of two spatial axes. Operator inputs: ``x``. Domain of x: (n, c, h, w); y: (n, c, p, q).

    ``scale`` is output size / input size as ONNX defines it (the given scales, not recomputed).
    """

    mode: ResizeMode
    coordinates: ResizeCoordinates
    nearest: NearestMode
    n: Extent
    c: int
    h: int
    w: int
    p: int
    q: int
    scale: tuple[float, float]
    x: Tensor
    y: Tensor

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.n
