"""Compare what a kernel wrote with what it may have written."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.blocks import by_blocks
from wpk.checks.float64_nodes import Array
from wpk.checks.rounded import rounded

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
        at_most: Whether the largest error is only known to be no larger.
    """

    wrong: int
    total: int
    worst: float
    example: str
    at_most: bool = False

    def __add__(self, other: "Comparison") -> "Comparison":
        """Both together, with the worse example."""
        worse = other if other.worst > self.worst else self
        example = worse.example or self.example or other.example
        wrong, total = self.wrong + other.wrong, self.total + other.total
        return Comparison(wrong, total, worse.worst, example, worse.at_most)

    @property
    def passed(self) -> bool:
        """Whether every element is within its tolerance."""
        return self.wrong == 0


def compare(actual: Array, expected: Array, tolerance: Floats | None) -> Comparison:
    """Compare elementwise.

    NaN fits NaN and infinity fits the same infinity. A value beyond the type's range fits the
    infinity that it rounds to. Integers and booleans are compared as such, and must be equal where
    the tolerance is 0.

    Args:
        actual: The elements as they lay in memory.
        expected: The expected elements, in float64 or exact.
        tolerance: Allowed absolute difference, 1 for a boolean that may be either; None asks for
            equality.
    """
    written, right = actual.ravel(), expected.ravel()
    allowed = None if tolerance is None else np.broadcast_to(tolerance, expected.shape).ravel()

    def judge(block: slice) -> tuple[float, int, int]:
        if allowed is None:
            errors = np.where(same_numbers(written[block], right[block]), 0.0, np.inf)
        elif written.dtype.kind in "biu":
            errors = _whole_units(written[block], right[block], allowed[block])
        else:
            errors = units(written[block], np.asarray(right[block], np.float64), allowed[block])
        if written.dtype.kind == "b":  # NumPy takes any byte but 0 for true
            errors[written[block].view(np.uint8) > 1] = np.inf
        at = int(np.argmax(errors))
        return float(errors[at]), block.start + at, int(np.count_nonzero(errors > 1.0))

    judged = by_blocks(written.size, judge)
    if not judged:
        return Comparison(0, 0, 0.0, "")
    wrong = sum(count for _, _, count in judged)
    worst, at, _ = max(judged, key=lambda block: block[0])
    example = _example(written, right, at, expected.shape) if wrong else ""
    return Comparison(wrong, written.size, worst, example)


def compare_by_floor(actual: Array, expected: Array, floor: Floats) -> Comparison | None:
    """Compare by what is allowed at least; None where that does not show that every element is right.

    Args:
        actual: The elements as they lay in memory, of floating point.
        expected: The expected elements, in float64.
        floor: Nowhere larger than the tolerance.
    """
    written, right = actual.ravel(), expected.ravel()
    allowed = np.broadcast_to(floor, expected.shape).ravel()

    def judge(block: slice) -> float:
        with np.errstate(all="ignore"):
            errors = np.asarray(written[block], np.float64)
            errors = np.abs(errors - np.asarray(right[block], np.float64))
            fits = (errors <= allowed[block]) & (errors < np.inf)
            if not fits.all():
                return np.inf
            errors /= allowed[block]
        return float(np.fmax.reduce(errors, initial=0.0))  # 0 / 0 is NaN

    worst = max(by_blocks(written.size, judge), default=0.0)
    return Comparison(0, written.size, worst, "", at_most=True) if worst <= 1.0 else None


def units(actual: Array, expected: Floats, tolerance: Floats) -> Floats:
    """Return the error of each element in units of its tolerance, as `compare` counts it."""
    tolerance = np.broadcast_to(tolerance, actual.shape)
    with np.errstate(all="ignore"):
        y = actual.astype(np.float64)
        errors = np.abs(y - expected) / tolerance
        nearest = expected + np.sign(expected) * tolerance
        overflown = np.isinf(rounded(nearest, actual.dtype)) & (np.sign(y) == np.sign(expected))
    errors = np.where(y == expected, 0.0, errors)
    fits = (np.isnan(y) & np.isnan(expected)) | (np.isinf(y) & overflown)
    return np.where(fits, 0.0, np.where(np.isfinite(errors), errors, np.inf))


def same_numbers(one: Array, other: Array) -> NDArray[np.bool_]:
    """Where two arrays of one type hold the same number, or both NaN."""
    equal: NDArray[np.bool_] = (one == other) | ((one != one) & (other != other))
    return equal


def _whole_units(actual: Array, expected: Array, tolerance: Floats) -> Floats:
    """Return the same for integers and booleans, which float64 may not be able to hold."""
    with np.errstate(all="ignore"):
        errors = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) / tolerance
    return np.where(actual == expected, 0.0, np.where(tolerance > 0.0, errors, np.inf))


def _example(written: Array, right: Array, at: int, shape: tuple[int, ...]) -> str:
    where = ", ".join(str(int(i)) for i in np.unravel_index(at, shape))
    return f"[{where}] is {written[at]}, expected {right[at]}"
