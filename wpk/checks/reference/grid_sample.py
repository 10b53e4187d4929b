"""The references of GridSample, of which onnx's own computes places in fp32 and element by element, and of AffineGrid."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

_KEYS = -0.75
"""Of the family of cubic convolutions (Keys 1981) the one that ONNX Runtime and PyTorch take."""


class AffineGrid(OpRun):
    """``theta (x, y, 1)`` or ``theta (x, y, z, 1)`` at every pixel; onnx 1.23's rounds to fp32.

    Coordinates go from -1 to 1: through the centres of pixels, with ``align_corners`` from the first
    centre to the last.
    """

    def _run(self, theta: Any, size: Any, align_corners: int | None = None) -> tuple[Any]:
        lengths = [int(length) for length in size[2:]]
        axes = [
            np.arange(n) * (2.0 / (n - 1)) - 1.0
            if align_corners
            else (2.0 * np.arange(n) + 1.0) / n - 1.0
            for n in lengths
        ]
        places = np.meshgrid(*axes, indexing="ij")[::-1]
        points = np.stack([*places, np.ones(lengths)], axis=-1)
        grid = np.einsum("nij,...j->n...i", theta, points)
        return (np.asarray(grid, theta.dtype),)


class GridSample(OpRun):
    """``y[n, c, o...]`` is the image ``x[n, c]`` at the place ``grid[n, o...]``, whose last axis comes first.

    Attributes: ``mode`` (nearest; linear or bilinear; cubic or bicubic), ``padding_mode`` (zeros, border,
    reflection), ``align_corners``. Padding moves taps and not places, as in ONNX Runtime: onnx 1.23 clamps
    the place itself where that is beyond half an element outside, which is other cubic weights.
    """

    def _run(
        self,
        x: Any,
        grid: Any,
        align_corners: int = 0,
        mode: str = "linear",
        padding_mode: str = "zeros",
    ) -> tuple[Any]:
        aligned, lengths = bool(align_corners), x.shape[2:]
        ahead = np.moveaxis(grid[..., ::-1], -1, 0) + grid.dtype.type(1)
        axes = []
        for each, length in zip(ahead, lengths, strict=True):
            place = each / 2 * (length - 1) if aligned else (each * length - 1) / 2
            axes.append([*_taps(place, mode)])
        y = np.zeros((*grid.shape[:-1], x.shape[1]), x.dtype)
        for taps in product(*axes):
            index, inside = [], np.ones(grid.shape[:-1], bool)
            for (tap, _), length in zip(taps, lengths, strict=True):
                inside &= (padding_mode != "zeros") | ((tap >= 0) & (tap < length))
                reflects = padding_mode == "reflection"
                moved = _reflected(tap, length, aligned) if reflects else tap
                index.append(np.clip(moved, 0, length - 1).astype(np.int64))
            weight = np.prod([weight for _, weight in taps], axis=0)
            y += np.where(inside[..., None], _read(x, index), 0) * weight[..., None].astype(x.dtype)
        return (np.moveaxis(y, -1, 1),)


def _read(x: NDArray[Any], index: list[NDArray[np.int64]]) -> NDArray[Any]:
    """All channels of the elements, these last."""
    batches = np.arange(len(x)).reshape(-1, *(1 for _ in index))
    found: NDArray[Any] = np.moveaxis(x, 1, -1)[(batches, *index)]
    return found


def _taps(place: NDArray[Any], mode: str) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Which elements of an axis are read, and their weights by the distance to the place."""
    if mode == "nearest":
        yield np.rint(place), np.ones_like(place)
        return
    reach = 2 if mode.endswith("cubic") else 1
    first = np.floor(place)
    for step in range(1 - reach, 1 + reach):
        distance = np.abs((place - first) - step)
        yield first + step, (1 - distance if reach == 1 else _cubic(distance))


def _cubic(d: NDArray[Any]) -> NDArray[Any]:
    """Keys' two pieces."""
    near = (_KEYS + 2) * d**3 - (_KEYS + 3) * d**2 + 1
    far = _KEYS * d**3 - 5 * _KEYS * d**2 + 8 * _KEYS * d - 4 * _KEYS
    return np.where(d <= 1, near, far)


def _reflected(tap: NDArray[Any], length: int, aligned: bool) -> NDArray[Any]:
    """Elements in the order in which they are met: forth and back, and so on."""
    there = [*range(length)]
    back = there[-2:0:-1] if aligned else there[::-1]
    order = np.array(there + back)
    finite = np.where(np.isfinite(tap), tap, 0)
    return order[np.mod(finite, len(order)).astype(np.int64)]
