"""Data movement that strides alone cannot say: gather, pad, resize."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, prod

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.family import Family
from wpk.problems.operand import Tensor
from wpk.problems.phrases import area, batch_words, by, extent_words, sentence
from wpk.problems.problem import Accesses, Problem, Traffic, counted_axes, does_not_lead


@dataclass(frozen=True)
class Gather(Problem):
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

    carries_double = True
    family = Family.MOVEMENT

    def words(self) -> str:
        """See `Problem.words`."""
        outer = "" if self.outer == Extent(1) else f"{extent_words(self.outer)} times"
        rows = f"{extent_words(self.count)} of {self.axis_size} rows of {self.inner}"
        return sentence("gather", outer, rows)

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        return {
            "outer": self.outer.value,
            "axis_size": self.axis_size,
            "count": self.count.value,
            "inner": self.inner,
        }

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        data = Access(self.data, (self.outer, self.axis_size, self.inner))
        index = Access(self.index, (self.outer, self.count))
        return (data, index), Access(self.y, (self.outer, self.count, self.inner))

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; every index may name the same row."""
        index = Access(self.index, (self.outer, self.count))
        row = Access(self.data, (self.outer, 1, self.inner))
        y = Access(self.y, (self.outer, self.count, self.inner))
        return Traffic(index.distinct_bytes + row.distinct_bytes + y.distinct_bytes, 0, 0)

    def table_size(self, operand: int) -> int:
        """See `Problem.table_size`."""
        return self.axis_size if operand == 1 else 0


class PadMode(StrEnum):
    """What lies outside."""

    CONSTANT = "constant"
    REFLECT = "reflect"
    EDGE = "edge"
    WRAP = "wrap"


@dataclass(frozen=True)
class Pad(Problem):
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

    carries_double = True
    family = Family.MOVEMENT

    def words(self) -> str:
        """See `Problem.words`."""
        return f"pad ({self.mode}) {by(self.x_shape)} → {by(self.y_shape)}"

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        return counted_axes("x", self.x_shape, 4) | counted_axes("y", self.y_shape, 4)

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        x = Access(self.x, (self.leading, *self.x_shape[1:]))
        return (x,), Access(self.y, (self.leading, *self.y_shape[1:]))

    def traffic(self) -> Traffic:
        """See `Problem.traffic`."""
        inside = [
            max(1, min(x, begin + x, y, y - begin))
            for x, y, begin in zip(self.x_shape, self.y_shape, self.begin, strict=True)
        ]
        read, written = Access(self.x, (self.leading, *inside[1:])), self.accesses()[1]
        return Traffic(read.distinct_bytes + written.distinct_bytes, 0, 0)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from does_not_lead("x_shape", self.x_shape, self.leading)
        yield from does_not_lead("y_shape", self.y_shape, self.leading)
        if len({len(self.x_shape), len(self.y_shape), len(self.begin)}) != 1:
            yield "begin", "shapes and begin have different ranks"
        elif self.begin[0] != 0:
            yield "begin", f"{self.begin[0]} along the leading axis"


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
class Resize(Problem):
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

    carries_double = True
    family = Family.MOVEMENT

    @property
    def numbers(self) -> DType:
        """See `Problem.numbers`; positions are computed in them, too."""
        return self.x.dtype if self.x.dtype is DType.FP64 else DType.FP32

    def words(self) -> str:
        """See `Problem.words`."""
        sizes = f"{area(self.h, self.w)} → {area(self.p, self.q)}"
        return sentence(f"resize ({self.mode}) {self.c}ch {sizes}", batch_words(self.n))

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        sizes = {"c": self.c, "h": self.h, "w": self.w, "p": self.p, "q": self.q}
        return {"n": self.n.value, **sizes}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        x = Access(self.x, (self.n, self.c, self.h, self.w))
        return (x,), Access(self.y, (self.n, self.c, self.p, self.q))

    def traffic(self) -> Traffic:
        """See `Problem.traffic`.

        Samples lie at least as close as the coarser grid, where rounding may leave out an end. Linear
        ones take three interpolations of two operations each.
        """
        rows, columns = (max(1, min(pair) - 1) for pair in ((self.h, self.p), (self.w, self.q)))
        read, written = Access(self.x, (self.n, self.c, rows, columns)), self.accesses()[1]
        others = 6 * prod(written.sizes) if self.mode is ResizeMode.LINEAR else 0
        return Traffic(read.distinct_bytes + written.distinct_bytes, 0, others)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        for scale in self.scale:
            if not isfinite(scale) or scale <= 0:
                yield "scale", f"{scale} is no scale"
