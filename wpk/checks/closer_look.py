"""Element by element: whether roundings explain how an engine differs from ONNX Runtime.

Limits on the median and on the worst element are the same for all elements of an output. Where they
are too narrow, or so wide that they say nothing, the model is executed with disturbances
(`wpk.checks.disturbed`) that show which elements roundings move, and how far: one in front of a tie
by all of a step, its neighbours hardly at all. Where ONNX Runtime's own roundings decide a tie, as
between two integers of a quantised tensor, the model in float64 says what is right: an element may be
what either of the two gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wpk.checks.bounded import Floats
from wpk.checks.compare import same_numbers
from wpk.checks.disturbed import DisturbedModel, Noise
from wpk.checks.float64_nodes import Array
from wpk.checks.limits import BLIND, ROUNDING_FACTOR, ErrorLimit
from wpk.plan import Outcome

RUNS = 5
FACTOR = 6.0
"""Times that an element may differ by what it, or most of the output, was moved by in `RUNS` runs: both
sides round (sqrt 2), one of 10^5 elements is 4.4 standard deviations off, and the furthest of five
draws is about one."""

STRONG_RUNS, STRONG = 24, 8.0
"""Runs at most, and the strength of their disturbances, that find ties: what only they move as far as an
engine is off is neither right nor wrong."""

MOST_UNDECIDED = 0.1
"""Part of an output's elements that may be undecided before nothing is said of it: a fault that hits
ten elements lies in such ones alone with a probability of 1e-10."""


class CloserLook:
    """What roundings do to the outputs of a model on one input; computed when it is asked for."""

    def __init__(self, model: DisturbedModel) -> None:
        """Take the model."""
        self._model = model

    def floats(
        self, name: str, actual: Array, right: Array, limit: ErrorLimit
    ) -> tuple[Outcome, str]:
        """Return the outcome for a floating point output.

        Args:
            name: The output's name.
            actual: What the engine gave.
            right: What it should give.
            limit: What any element may differ by, relative to the RMS.
        """
        rms = _rms(right.astype(np.float64))
        scale, floor = (rms, limit) if rms > 0.0 else (1.0, ErrorLimit(0.0, 0.0))
        exact = self._undisturbed[name]
        apart = np.minimum(distance(actual, right), distance(actual, exact)) / scale
        allowed = FACTOR * _at_least_typical(self._reach[name] / scale)
        wrong = apart > np.maximum(allowed, floor.worst)
        ties = np.zeros(wrong.shape, bool)
        if wrong.any():
            ties = wrong & self._strongly(name, lambda reach: 2.0 * reach / scale >= apart, wrong)
        median_wrong = np.median(apart) > max(float(np.median(allowed)), floor.median)
        undecided = ties | (allowed >= (BLIND.worst if rms > 0.0 else np.finfo(float).tiny))
        if (wrong & ~ties).any() or median_wrong:
            return Outcome.FAILED, (
                f"{np.count_nonzero(wrong & ~ties)} of {wrong.size} elements are further off than "
                "roundings at every node move them"
            )
        typical = float(np.median(self._reach[name])) / scale
        other = distance(actual, right) / scale > np.maximum(allowed, floor.worst)
        return _said(undecided, typical, int(np.count_nonzero(other & ~wrong)))

    def moves_shape(self, name: str) -> bool:
        """Return whether roundings decide how many elements an output has, as behind NonZero."""
        everywhere = np.ones(self._reach[name].shape, bool)
        if not everywhere.size:
            return False
        moved = np.isinf(self._reach[name])
        return bool((moved if moved.all() else self._strongly(name, np.isinf, everywhere)).all())

    def integers(self, name: str, actual: Array, right: Array) -> tuple[Outcome, str]:
        """Return the outcome for an output of integers, booleans or 8-bit numbers; arguments as for `floats`."""
        undecided = self._reach[name] > 0.0
        exact = self._undisturbed[name]
        wrong = ~same_numbers(actual, right) & (actual != exact) & ~undecided
        if wrong.any():
            ties = wrong & self._strongly(name, lambda reach: reach > 0.0, wrong)
            undecided, wrong = undecided | ties, wrong & ~ties
        if wrong.any():
            return Outcome.FAILED, (
                f"{np.count_nonzero(wrong)} of {wrong.size} elements that no rounding changes differ"
            )
        return _said(undecided, 0.0)

    @cached_property
    def _undisturbed(self) -> Mapping[str, Array]:
        return self._model.outputs()

    def _strongly(
        self, name: str, explains: Callable[[Floats], Array], asked: Array
    ) -> NDArray[np.bool_]:
        """Which elements of an output strong disturbances explain.

        Runs end where all that is asked for is explained: another one would move elements further, and
        explain no fewer.

        Args:
            name: The output's name.
            explains: Of how far each element was moved, whether that explains it.
            asked: The elements that are to be explained.
        """
        strong = self._strong
        while not explains(strong.reach[name])[asked].all() and strong.runs_again():
            pass
        return np.asarray(explains(strong.reach[name]), bool)

    @cached_property
    def _reach(self) -> Mapping[str, Floats]:
        scatter = _Scatter(self._model, self._undisturbed, RUNS, 1.0)
        while scatter.runs_again():
            pass
        return scatter.reach

    @cached_property
    def _strong(self) -> _Scatter:
        return _Scatter(self._model, self._undisturbed, STRONG_RUNS, STRONG)


class _Scatter:
    """How far disturbances of one strength have moved each element of a model's outputs so far.

    Infinite where an element was finite in one run alone, and where it has no counterpart.
    """

    def __init__(
        self, model: DisturbedModel, right: Mapping[str, Array], runs: int, strength: float
    ) -> None:
        self._model, self._right, self._strength = model, right, strength
        self._seeds = iter(range(runs))
        self.reach = {name: np.zeros(value.shape) for name, value in right.items()}

    def runs_again(self) -> bool:
        """Disturb the model by the next seed; False where there is none left."""
        seed = next(self._seeds, None)
        if seed is None:
            return False
        for name, moved in self._model.outputs(Noise(self._strength, seed)).items():
            if moved.shape == self.reach[name].shape:
                apart = distance(moved, self._right[name])
                np.maximum(self.reach[name], apart, out=self.reach[name])
            else:
                self.reach[name][...] = np.inf
        return True


def distance(a: Array, b: Array) -> Floats:
    """Return |a - b|: 0 where both are the same infinity or NaN, infinite where only one of them is."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        apart = np.abs(x - y)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _at_least_typical(reach: Floats) -> Floats:
    """Return how far each element was moved, at least the RMS of all but the most moved: few runs may miss one."""
    flat = np.sort(reach, axis=None)
    usual = flat[: flat.size - int(MOST_UNDECIDED * flat.size)]
    return np.maximum(reach, _rms(usual))


def _rms(values: Floats) -> float:
    """Return the RMS of the finite elements; 0 where there is none."""
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.sum(finite**2) / max(1, finite.size)))


def _said(undecided: Array, typical: float, exact: int = 0) -> tuple[Outcome, str]:
    count = int(np.count_nonzero(undecided))
    if ROUNDING_FACTOR * typical >= BLIND.median:
        return Outcome.INCONCLUSIVE, (
            f"which says nothing: roundings at every node move half of it by {typical:.1e} of its RMS"
        )
    if count > MOST_UNDECIDED * undecided.size:
        return Outcome.INCONCLUSIVE, (
            f"which says nothing: roundings at every node decide {count} of {undecided.size} elements"
        )
    words = f"no further than roundings at every node move it; {count} undecided"
    if exact:
        words += f", {exact} as in float64, where those of ONNX Runtime decide otherwise"
    return Outcome.OK, words
