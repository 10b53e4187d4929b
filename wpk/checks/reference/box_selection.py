"""NonMaxSuppression in float64, all boxes at once; onnx's own compares them one by one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun


class NonMaxSuppression(OpRun):
    """Rows (batch, class, box) of the boxes that overlap no box of a higher score.

    Of equal scores the lower box comes first; a score of NaN is none. Attribute: ``center_point_box``.
    """

    def _run(
        self,
        boxes: Any,
        scores: Any,
        most: Any = None,
        overlap: Any = None,
        threshold: Any = None,
        center_point_box: int = 0,
    ) -> tuple[Any]:
        limit = 0 if most is None or most.size == 0 else max(0, int(np.ravel(most)[0]))
        part = 0.0 if overlap is None or overlap.size == 0 else float(np.ravel(overlap)[0])
        least = None if threshold is None or threshold.size == 0 else float(np.ravel(threshold)[0])
        rows = []
        for image, kind in np.ndindex(scores.shape[:2]):
            sides = _sides(boxes[image], centred=bool(center_point_box))
            for box in _selected(sides, scores[image, kind], limit, part, least):
                rows.append((image, kind, box))
        return (np.array(rows, np.int64).reshape(-1, 3),)


def _sides(boxes: Any, *, centred: bool) -> NDArray[Any]:
    """Of each box the lower and the upper side along both axes: (boxes, 2, 2)."""
    if centred:
        middle, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.stack([middle - half, middle + half], axis=1)
    corners = boxes.reshape(-1, 2, 2)
    return np.stack([corners.min(axis=1), corners.max(axis=1)], axis=1)


def _selected(
    sides: NDArray[Any], scores: Any, limit: int, part: float, least: float | None
) -> list[int]:
    taken = scores > least if least is not None else ~np.isnan(scores)
    order = np.argsort(-scores, kind="stable")
    waiting = order[taken[order]]
    found: list[int] = []
    while waiting.size and len(found) < limit:
        best = int(waiting[0])
        found.append(best)
        rest = waiting[1:]
        waiting = rest[~_overlap(sides[best], sides[rest], part)]
    return found


def _overlap(one: NDArray[Any], others: NDArray[Any], part: float) -> NDArray[np.bool_]:
    """Whether boxes share more than a part of what both cover."""
    low, high = np.maximum(one[0], others[:, 0]), np.minimum(one[1], others[:, 1])
    shared = np.where((high > low).all(axis=1), (high - low).prod(axis=1), 0.0)
    area, areas = (one[1] - one[0]).prod(), (others[:, 1] - others[:, 0]).prod(axis=1)
    whole = area + areas - shared
    usable = (shared > 0) & (area > 0) & (areas > 0) & (whole > 0)
    found: NDArray[np.bool_] = usable & (shared > part * np.where(usable, whole, 1.0))
    return found
