"""Experience is what was measured of other problems with the same template; searchers begin with it.

It comes from the tuning store (`wpk.search.loop.lessons`), or in studies from recordings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Columns, Floats

Encoded = NDArray[np.float32]

PLACES, _WIDTH = 9, 0.6
"""A parameter from 0 to 255 lies near one of so many places: 1 more than it is a power of two, or nearly."""

_SLOWEST = 2.0
"""An estimate of more than 2 ** (2 * _SLOWEST) times the least says no more than that."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """A lesson is one problem's trials.

    Attributes:
        features: The problem in numbers (see `Problem.features`).
        columns: The schedules that were tried.
        costs: Seconds of each; infinity where it failed.
        estimates: Predicted seconds of each.
    """

    features: Mapping[str, float]
    columns: Columns
    costs: Floats
    estimates: Floats

    def best(self, count: int) -> list[dict[str, int]]:
        """Return the parameters of the fastest schedules, best first; only of those that ran."""
        ran = np.flatnonzero(np.isfinite(self.costs))
        order = ran[np.argsort(self.costs[ran], kind="stable")][:count]
        return [{name: int(v[row]) for name, v in self.columns.items()} for row in order.tolist()]


@dataclass(frozen=True, eq=False)
class Experience:
    """Experience is the lessons of one template.

    Attributes:
        lessons: One a problem, all with the same features and parameters.
    """

    lessons: tuple[Lesson, ...]

    def nearest(self, features: Mapping[str, float]) -> list[Lesson]:
        """Return the lessons, those of similar problems first: by the logarithms of their numbers."""
        own = _logarithms(features)
        distances = [
            float(np.square(_logarithms(each.features) - own).sum()) for each in self.lessons
        ]
        return [self.lessons[place] for place in np.argsort(distances, kind="stable").tolist()]


def encoded(features: Mapping[str, float], columns: Columns, estimates: Floats | None) -> Encoded:
    """Return schedules of a problem as inputs of a network: (schedules, numbers), each of order one.

    The problem's numbers, the schedule's parameters, and how much longer than the least estimate the model expects it
    to take. Logarithms, since the raw numbers differ by nine orders of magnitude; a parameter's is spread over places,
    so that a network finds a best value as fast as a largest one.
    """
    count = len(next(iter(columns.values())))
    problem = np.broadcast_to(_logarithms(features) / 8, (count, len(features)))
    table = np.stack([np.log2(1.0 + values) for values in columns.values()], axis=1)
    near = np.exp(-np.square((table[:, :, None] - np.arange(PLACES)) / _WIDTH))
    longer = np.zeros(count) if estimates is None else np.log2(estimates / estimates.min()) / 2
    inputs = (problem, near.reshape(count, -1), np.minimum(longer, _SLOWEST)[:, None])
    return np.concatenate(inputs, axis=1).astype(np.float32)


def _logarithms(features: Mapping[str, float]) -> Floats:
    logarithms: Floats = np.log2(1.0 + np.asarray(list(features.values()), np.float64))
    return logarithms
