"""Compare what a kernel wrote with what it may have written."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.checks.float64_nodes import Array

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """The outcome of an elementwise comparison.

    Attributes:
        wrong: Elements outside their tolerance.
        total: Elements.
        worst: Largest error in units of its tolerance; infinite where something is not finite that
            should be, or the other way round.
        example: The worst element in words; empty where nothing is wrong.
    """

    wrong: int
    total: int
    worst: float
    example: str

    @property
    def passed(self) -> bool:
        """Whether every element is within its tolerance."""
        return self.wrong == 0


def compare(actual: Array, expected: Array, tolerance: Floats | None) -> Comparison:
    """Compare elementwise.

    NaN fits NaN and infinity fits the same infinity. A value beyond the type's range fits the
    infinity that it rounds to.

    Args:
        actual: As it lay in memory.
        expected: In float64, or exact.
        tolerance: Allowed absolute difference; None asks for equality.
    """
    actual = actual.reshape(expected.shape)
    if tolerance is None:
        units = np.where(actual == expected, 0.0, np.inf)
    else:
        units = _units(actual, np.asarray(expected, np.float64), tolerance)
    worst = float(units.max(initial=0.0))
    wrong = int(np.count_nonzero(units > 1.0))
    return Comparison(wrong, actual.size, worst, _example(actual, expected, units) if wrong else "")


def _units(actual: Array, expected: Floats, tolerance: Floats) -> Floats:
    y = actual.astype(np.float64)
    tolerance = np.broadcast_to(tolerance, y.shape)
    with np.errstate(all="ignore"):
        units = np.abs(y - expected) / tolerance
        nearest = expected + np.sign(expected) * tolerance
        overflown = np.isinf(nearest.astype(actual.dtype)) & (np.sign(y) == np.sign(expected))
    units = np.where(y == expected, 0.0, units)
    fits = (np.isnan(y) & np.isnan(expected)) | (np.isinf(y) & overflown)
    return np.where(fits, 0.0, np.where(np.isfinite(units), units, np.inf))


def _example(actual: Array, expected: Array, units: Floats) -> str:
    at = np.unravel_index(int(np.argmax(units)), units.shape)
    where = ", ".join(str(int(i)) for i in at)
    return f"[{where}] is {actual[at]}, expected {expected[at]}"
