"""RoiAlign in float64, all samples of a region at once; onnx's own goes pixel by pixel, and knows half pixels alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

_SINCE = 16
"""The opset that has half pixels, which are the default since."""

_NEAR = 2.0
"""Pixels around an image: samples that are further outside stay outside, however places are rounded."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Regions:
    """The attributes of a RoiAlign.

    Attributes:
        largest: Whether windows have the largest of their samples rather than the mean.
        half_pixel: Whether regions are moved back by half a pixel.
        sampling: Samples along an axis of a window; 0 for as many as it is long, rounded up.
        scale: Pixels of the image to a unit of the regions.
        windows: Windows along the height and the width.
    """

    largest: bool
    half_pixel: bool
    sampling: int
    scale: float
    windows: tuple[int, int]

    @classmethod
    def of(cls, attributes: Mapping[str, Any], opset: int) -> Self:
        """Read the attributes that a node has."""
        default = "half_pixel" if opset >= _SINCE else "output_half_pixel"
        texts = (
            attributes.get(name, standard)
            for name, standard in (
                ("mode", "avg"),
                ("coordinate_transformation_mode", default),
            )
        )
        mode, coordinates = (t.decode() if isinstance(t, bytes) else str(t) for t in texts)
        return cls(
            largest=mode == "max",
            half_pixel=coordinates == "half_pixel",
            sampling=int(attributes.get("sampling_ratio", 0)),
            scale=float(attributes.get("spatial_scale", 1.0)),
            windows=(
                int(attributes.get("output_height", 1)),
                int(attributes.get("output_width", 1)),
            ),
        )

    def axis(self, side: int, start: float, end: float) -> Axis:
        """The windows of a region along the height (0) or the width (1)."""
        back = 0.5 if self.half_pixel else 0.0
        first, last = (each * self.scale - back for each in (start, end))
        length = last - first if self.half_pixel else max(last - first, 1.0)
        count = self.windows[side]
        samples = self.sampling or max(0, int(np.ceil(length / count)))
        return Axis(first, length / count, samples, count)


@dataclass(frozen=True)
class Axis:
    """Windows of a region along one axis: where the first begins, how long each is, and its samples."""

    start: float
    window: float
    samples: int
    count: int

    def places(self, size: int, moved: float = 0.0) -> tuple[NDArray[np.int64], Floats]:
        """Windows and places of the samples on an axis of so many pixels or near it, each moved as far."""
        windows, steps = np.arange(self.count), np.arange(self.samples) + 0.5
        behind = steps * self.window / max(self.samples, 1)
        places = (self.start + windows * self.window)[:, None] + behind
        near = (places >= -1 - _NEAR) & (places <= size + _NEAR)
        return np.nonzero(near)[0], places[near] + moved


def samples_of(image: Any, rows: Floats, columns: Floats, *, largest: bool) -> Any:
    """All channels at every row and column: between four pixels, or the largest of these with their weights."""
    (inside, ups, down), (within, lefts, right) = (
        _around(places, size) for places, size in zip((rows, columns), image.shape[1:], strict=True)
    )
    corners = [
        image[:, row[:, None], column[None, :]]
        * np.asarray(vertical[:, None] * across[None, :], image.dtype)
        for row, vertical in zip(ups, (1 - down, down), strict=True)
        for column, across in zip(lefts, (1 - right, right), strict=True)
    ]
    values = np.maximum.reduce(corners) if largest else sum(corners)
    return np.where(inside[:, None] & within[None, :], values, image.dtype.type(0))


def _around(places: Floats, size: int) -> tuple[NDArray[np.bool_], list[NDArray[np.int64]], Floats]:
    """Whether places lie inside; the pixels around each, and how far it lies towards the second."""
    inside = (places >= -1.0) & (places <= size)
    forward = np.maximum(places, 0.0)
    low = np.minimum(forward, size - 1).astype(np.int64)
    weight = np.where(low < size - 1, forward - low, 0.0)
    return inside, [low, np.minimum(low + 1, size - 1)], weight


def pooled(values: Any, rows: Axis, columns: Axis, where: tuple[Any, Any], *, largest: bool) -> Any:
    """What windows become of samples that lie in the windows ``where``; those that are not there are 0."""
    places: Any = (slice(None), where[0][:, None], where[1][None, :])
    count = rows.samples * columns.samples
    shape = (len(values), rows.count, columns.count)
    if count == 0 or not largest:
        y: Any = np.zeros(shape, values.dtype)
        np.add.at(y, places, values)
        return y / max(count, 1)
    y = np.full(shape, -np.inf, values.dtype)
    np.maximum.at(y, places, values)
    here = np.multiply.outer(
        *(np.bincount(each, minlength=n) for each, n in zip(where, shape[1:], strict=True))
    )
    return np.where(here < count, np.maximum(y, 0), y)


def region_of(image: Any, rows: Axis, columns: Axis, *, largest: bool) -> Any:
    """The windows of a region, all channels of them."""
    (down, heights), (across, widths) = rows.places(image.shape[1]), columns.places(image.shape[2])
    values = samples_of(image, heights, widths, largest=largest)
    return pooled(values, rows, columns, (down, across), largest=largest)


def with_samples(axis: Axis, samples: int) -> Axis:
    """The axis with a grid of another size."""
    return replace(axis, samples=samples)


class RoiAlign(OpRun):
    """``y[r, c]`` are windows of region ``rois[r]`` of image ``x[batch[r], c]``.

    A sample more than a pixel outside is 0, where onnx 1.23's and ONNX Runtime's has 0 times the first pixel.
    """

    def _run(self, x: Any, rois: Any, batch: Any, **attributes: Any) -> tuple[Any]:
        given = {each.name for each in self.onnx_node.attribute}
        own = {name: value for name, value in attributes.items() if name in given}
        how = Regions.of(own, self.run_params["opsets"][""])
        y: Any = np.zeros((len(rois), x.shape[1], *how.windows), x.dtype)
        for place, ((left, top, right, bottom), image) in enumerate(zip(rois, batch, strict=True)):
            rows, columns = how.axis(0, top, bottom), how.axis(1, left, right)
            y[place] = region_of(x[image], rows, columns, largest=how.largest)
        return (y,)
