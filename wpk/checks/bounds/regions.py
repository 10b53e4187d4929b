"""Error bounds of RoiAlign: see `wpk.checks.error_bounds`.

sums        4 u sqrt(terms) of the mean, or the largest, of magnitudes, and that of the incoming errors
places      what samples become where each is moved as far as its place may be off, along each axis
grids       of a window whose length is so close to a whole number that it may be rounded up or not, the other
"""

from itertools import product
from math import sqrt
from typing import Any

import numpy as np

from wpk.checks.bounded import Call, Floats
from wpk.checks.bounds.sums import SAFETY
from wpk.checks.reference.roi_align import (
    Axis,
    Regions,
    pooled,
    region_of,
    samples_of,
    with_samples,
)


def regions(call: Call) -> Floats:
    """Return the error bound of a RoiAlign."""
    attributes = {a.name: call.attribute(a.name, None) for a in call.node.attribute}
    how = Regions.of(attributes, call.evaluate.opset)
    x, rois = (np.asarray(call.value(place), np.float64) for place in (0, 1))
    wrong = np.broadcast_to(call.error(1), rois.shape)
    own = call.again({0: np.abs(x)})
    error: Floats = call.again({0: call.error(0)}) if call.errs(0) else np.zeros(call.y.shape)
    for place, (roi, image) in enumerate(zip(rois, call.value(2), strict=True)):
        axes = [how.axis(side, roi[1 - side], roi[3 - side]) for side in (0, 1)]
        off = [
            _place_error(how, roi[[1 - side, 3 - side]], wrong[place, [1 - side, 3 - side]], call)
            for side in (0, 1)
        ]
        terms = 4 * max(1, axes[0].samples * axes[1].samples)
        error[place] += SAFETY * call.roundoff * sqrt(terms) * own[place]
        error[place] += _of_places(x[image], axes, off, how)
        error[place] += _of_grids(x[image], axes, off, how)
    return error


def _place_error(how: Regions, sides: Floats, wrong: Floats, call: Call) -> float:
    """How far places between two sides may be off: those move, are scaled, and are walked from."""
    size = np.abs(sides * how.scale).sum() + 1.0
    return float(abs(how.scale) * wrong.max() + SAFETY * call.roundoff * size)


def _of_places(image: Any, axes: list[Axis], off: list[float], how: Regions) -> Any:
    """What samples change by, pooled like samples."""
    (down, heights), (across, widths) = (
        axis.places(size) for axis, size in zip(axes, image.shape[1:], strict=True)
    )
    values = samples_of(image, heights, widths, largest=how.largest)
    total: Any = np.zeros(values.shape)
    for moves in ((off[0], 0.0), (0.0, off[1])):
        worst = np.zeros(values.shape)
        for sign in (-1, 1):
            places = (heights + sign * moves[0], widths + sign * moves[1])
            moved = samples_of(image, *places, largest=how.largest)
            np.fmax(worst, np.abs(moved - values), out=worst)
        total += worst
    return pooled(total, axes[0], axes[1], (down, across), largest=how.largest)


def _of_grids(image: Any, axes: list[Axis], off: list[float], how: Regions) -> Any:
    """How far another grid lies from the one that there is, where there may be another."""
    if how.sampling:
        return 0.0
    grids = []
    for axis, error in zip(axes, off, strict=True):
        ends = (axis.window - 2 * error / axis.count, axis.window + 2 * error / axis.count)
        low, high = (max(0, int(np.ceil(end))) for end in ends)
        grids.append({axis.samples, low, high})
    y = region_of(image, *axes, largest=how.largest)
    worst: Any = np.zeros(y.shape)
    for rows, columns in product(*grids):
        if (rows, columns) == (axes[0].samples, axes[1].samples):
            continue
        others = (with_samples(axes[0], rows), with_samples(axes[1], columns))
        np.fmax(worst, np.abs(region_of(image, *others, largest=how.largest) - y), out=worst)
    return worst
