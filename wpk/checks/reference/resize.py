"""Resize in float64, an axis after the other, and how far coordinates computed in fp32 move its result.

The coordinates are those of ONNX's text, where ``length_resized`` is the number of samples along the
axis. onnx's own evaluator puts ``length_original * scale`` in its place, which need not be whole: for
align_corners and a scale that does not divide evenly it computes another function than the text, ONNX
Runtime and PyTorch. Sizes from scales are products in fp32, as in ONNX's shape inference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.ops.op_resize import Resize as OnnxResize

from wpk.checks.node_parts import by_parts

Floats = NDArray[np.float64]

_OURS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


@dataclass(frozen=True)
class Resampling:
    """Where every sample of the output comes from.

    Attributes:
        positions: Along each axis, in samples of the input; None where an axis stays as it is.
        rounded: Which of them fp32 does not compute exactly.
        mode: ``nearest`` or ``linear``.
        nearest: ONNX's nearest_mode.
    """

    positions: tuple[Floats | None, ...]
    rounded: tuple[NDArray[np.bool_], ...]
    mode: str
    nearest: str

    def __call__(self, x: Any, moved: Mapping[int, float] | None = None) -> Any:
        """The output.

        Args:
            x: The input.
            moved: By how much the positions along some axes are off where fp32 rounds them, in units
                of |position| + 1.
        """
        stays = (n if at is None else 1 for n, at in zip(x.shape, self.positions, strict=True))
        return by_parts(x, list(stays), lambda part: self._resampled(part, moved or {}))

    def _resampled(self, x: Any, moved: Mapping[int, float]) -> Any:
        y: Any = x
        for axis, (exact, rounded) in enumerate(zip(self.positions, self.rounded, strict=True)):
            if exact is not None:
                off = moved.get(axis, 0.0)
                y = self._along(y, axis, exact + off * (np.abs(exact) + 1.0) * rounded)
        return y

    @property
    def axes(self) -> list[int]:
        """The axes that change."""
        return [axis for axis, positions in enumerate(self.positions) if positions is not None]

    def _along(self, x: Any, axis: int, positions: Floats) -> Any:
        last = x.shape[axis] - 1
        if self.mode == "nearest":
            rounded = np.clip(_ROUNDED[self.nearest](positions), 0, last)
            return np.take(x, rounded.astype(np.int64), axis)
        inside = np.clip(positions, 0, last)
        low = inside.astype(np.int64)
        shape = [1] * x.ndim
        shape[axis] = low.size
        weight = (inside - low).reshape(shape)
        first, second = np.take(x, low, axis), np.take(x, np.minimum(low + 1, last), axis)
        return first * (1.0 - weight) + second * weight


_ROUNDED: dict[str, Any] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def resampling(
    shape: Sequence[int], scales: Any, sizes: Any, attributes: Mapping[str, Any]
) -> Resampling | None:
    """What a Resize does to an input of a shape; None where it is none of those that this file knows.

    Args:
        shape: The input's shape.
        scales: The input of that name; None or empty where there is none.
        sizes: The same.
        attributes: The node's attributes.
    """
    mode = attributes.get("mode") or "nearest"
    coordinates = attributes.get("coordinate_transformation_mode") or "half_pixel"
    policy = attributes.get("keep_aspect_ratio_policy") or "stretch"
    special = attributes.get("antialias") or attributes.get("axes") or policy != "stretch"
    if special or mode not in ("nearest", "linear") or coordinates not in _OURS:
        return None
    if scales is not None and np.size(scales):
        given = np.asarray(scales, np.float32)
        counts = [int(np.float32(n) * s) for n, s in zip(shape, given, strict=True)]
        factors = [float(s) for s in given]
    else:
        counts = [int(m) for m in sizes]
        factors = [m / n for m, n in zip(counts, shape, strict=True)]
    positions: list[Floats | None] = []
    rounded: list[NDArray[np.bool_]] = []
    for n, count, factor in zip(shape, counts, factors, strict=True):
        stays = count == n and factor == 1.0
        wide, narrow = (
            _positions(coordinates, n, count, f(factor)) for f in (np.float64, np.float32)
        )
        positions.append(None if stays else wide)
        rounded.append(wide != narrow)
    nearest = attributes.get("nearest_mode") or "round_prefer_floor"
    return Resampling(tuple(positions), tuple(rounded), mode, nearest)


def _positions(coordinates: str, size: int, count: int, scale: np.floating) -> Any:
    """Return positions along an axis, computed in the type of the scale."""
    at: Any = np.arange(count, dtype=scale.dtype)
    half = scale.dtype.type(0.5)
    match coordinates:
        case "align_corners":
            return at * scale.dtype.type(size - 1) / scale.dtype.type(max(1, count - 1))
        case "asymmetric":
            return at / scale
        case "pytorch_half_pixel" if count == 1:
            return at
    return (at + half) / scale - half


class Resize(OnnxResize):
    """Resize, nearest and linear, over any axes; onnx's for what lowering does not carry."""

    def _run(  # type: ignore[override]
        self, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, **attributes: Any
    ) -> tuple[Any]:
        ours = resampling(x.shape, scales, sizes, attributes)
        if ours is None:
            found: tuple[Any] = super()._run(x, roi, scales, sizes, **attributes)
            return found
        return (ours(x),)
