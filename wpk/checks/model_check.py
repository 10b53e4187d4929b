"""Compare a whole engine with ONNX Runtime on the untouched model.

Where the comparison would come out the same for a wrong engine it is inconclusive, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.checks.closer_look import CloserLook, distance
from wpk.checks.compare import same_numbers
from wpk.checks.evaluation import EvaluationError
from wpk.checks.float64_nodes import Array
from wpk.checks.limits import BLIND, LIMITS, OutputDistance, allowed
from wpk.checks.scope import Tolerance
from wpk.dtypes import Precision, is_fp8
from wpk.errors import LaunchError
from wpk.plan import Check, Outcome


def output_error(actual: Array, expected: Array) -> OutputDistance:
    """Errors relative to the RMS of ``expected``; what is not finite must be the same."""
    if actual.shape != expected.shape or expected.size == 0:
        same = actual.shape == expected.shape
        return OutputDistance(0.0, 0.0) if same else OutputDistance(np.inf, np.inf)
    apart, right = distance(actual, expected), expected.astype(np.float64)
    rms = _root_mean_square(right[np.isfinite(right)])
    with np.errstate(all="ignore"):
        error = np.where((apart == 0.0) | (apart == np.inf), apart, apart / rms)
    return OutputDistance(float(np.median(error)), float(error.max()))


def _root_mean_square(numbers: NDArray[np.float64]) -> float:
    """That of finite numbers, the squares of which may be too large for a float64."""
    largest = float(np.abs(numbers).max(initial=0.0))
    return largest and largest * float(np.sqrt(np.mean((numbers / largest) ** 2)))


def check_outputs(
    run: Callable[[Mapping[str, Array]], Mapping[str, Array]],
    expected: Mapping[str, Array],
    inputs: Mapping[str, Array],
    precision: Precision,
    name: str,
    rounded: Mapping[str, OutputDistance] | None = None,
    *,
    unmoved: Collection[str] = (),
    doubles: Collection[str] = (),
    tolerance: Tolerance | None = None,
    closer: CloserLook | None = None,
) -> Check:
    """Run an engine and compare all outputs.

    Args:
        run: The engine.
        expected: What is right.
        inputs: The inputs by name.
        precision: Decides the limits; integers and booleans must be equal.
        name: What the check is called.
        rounded: By how much each output differs where only the values in memory are rounded; None
            where that is not known.
        unmoved: Outputs that are the same for all inputs tried.
        doubles: Outputs that are computed in fp64 throughout, whatever the precision.
        tolerance: Decides instead of the limits.
        closer: Asked where the limits are too narrow, or too wide to say anything.
    """
    try:
        actual = run(inputs)
    except LaunchError as failure:
        return Check(name, Outcome.FAILED, failure.what)
    held = {each: Precision.FP64 if each in doubles else precision for each in expected}
    try:
        return _judged(actual, expected, inputs, held, name, rounded, unmoved, tolerance, closer)
    except EvaluationError as error:  # of the closer look
        return Check(name, Outcome.INCONCLUSIVE, error.what)


def _judged(
    actual: Mapping[str, Array],
    expected: Mapping[str, Array],
    inputs: Mapping[str, Array],
    held: Mapping[str, Precision],
    name: str,
    rounded: Mapping[str, OutputDistance] | None,
    unmoved: Collection[str],
    tolerance: Tolerance | None,
    closer: CloserLook | None,
) -> Check:
    """Compare all outputs; see `check_outputs`."""
    outcomes, blank, words = [], [], []
    for output, right in expected.items():
        judge = _Judge(output, held[output], (rounded or {}).get(output), tolerance, closer)
        outcome, detail = judge(actual.get(output), right)
        nothing = _blank(right, unmoved=output in unmoved)
        outcomes.append(outcome)
        blank += [bool(nothing)] if output not in inputs else []
        said = f", which says nothing: {nothing}" if outcome is Outcome.OK and nothing else ""
        words.append(f"'{output}' {detail}{said}")
    return Check(name, _overall(outcomes, blank), "; ".join(words))


def _overall(outcomes: Sequence[Outcome], blank: Sequence[bool]) -> Outcome:
    """Return the outcome for all outputs: at least half of the computed ones must say something."""
    for worst in (Outcome.FAILED, Outcome.INCONCLUSIVE):
        if worst in outcomes:
            return worst
    return Outcome.INCONCLUSIVE if 2 * sum(blank) > len(blank) else Outcome.OK


@dataclass(frozen=True)
class _Judge:
    """Judges one output, but for whether what is expected says anything; see `check_outputs`."""

    name: str
    precision: Precision
    rounded: OutputDistance | None
    tolerance: Tolerance | None
    closer: CloserLook | None

    def __call__(self, actual: Array | None, right: Array) -> tuple[Outcome, str]:
        if actual is None:
            return Outcome.FAILED, "is missing"
        if actual.shape != right.shape or actual.dtype != right.dtype:
            seen = f"{actual.dtype}{list(actual.shape)}"
            words = f"is {seen}, expected {right.dtype}{list(right.shape)}"
            return self._shapes(actual, right, words)
        if self.tolerance is not None:
            return _within(actual, right, self.tolerance)
        if right.dtype.kind in "iub" or is_fp8(right.dtype):
            return self._integers(actual, right)
        return self._floats(actual, right)

    def _floats(self, actual: Array, right: Array) -> tuple[Outcome, str]:
        error, limit = output_error(actual, right), allowed(self.precision, self.rounded)
        words = (
            f"median error {error.median:.1e} (allowed {limit.median:.0e}), largest {error.worst:.1e} "
            f"({limit.worst:.0e}), of its root mean square"
        )
        infinite = _infinite(actual, right)
        if infinite:  # no limit allows that; the model itself may give it for other roundings
            outcome, _ = self._closer(actual, right)
            return outcome, f"{words}: {infinite}"
        wide = limit.worst >= BLIND.worst
        if self.rounded is not None and (
            limit.median >= BLIND.median or (wide and self.closer is None)
        ):
            return Outcome.INCONCLUSIVE, (
                f"{words}, which says nothing: the model amplifies rounding, that of values in memory "
                f"alone to {self.rounded.median:.1e} (median) and {self.rounded.worst:.1e} (largest)"
            )
        right_enough = error.median <= limit.median and error.worst <= limit.worst
        if right_enough and not wide:
            return Outcome.OK, words
        outcome, said = self._closer(actual, right)
        return outcome, f"{words}{said}"

    def _closer(self, actual: Array, right: Array) -> tuple[Outcome, str]:
        """Return what a closer look says of an output that no limit allows."""
        if self.closer is None:
            return Outcome.FAILED, ""
        limit = LIMITS[self.precision]
        outcome, said = self.closer.floats(self.name, actual, right, limit)
        return outcome, f": {said}"

    def _shapes(self, actual: Array, right: Array, words: str) -> tuple[Outcome, str]:
        """Judge another shape, which rounding excuses only where the numbers decide it."""
        alike = actual.dtype == right.dtype and actual.ndim == right.ndim
        if alike and self.closer is not None and self.closer.moves_shape(self.name):
            return Outcome.INCONCLUSIVE, f"{words}: roundings decide how many there are"
        return Outcome.FAILED, words

    def _integers(self, actual: Array, right: Array) -> tuple[Outcome, str]:
        """Judge integers, booleans and 8-bit numbers, which rounding excuses only where it changes them."""
        differing = int(np.count_nonzero(~same_numbers(actual, right)))
        if not differing:
            return Outcome.OK, f"all {right.size} elements equal"
        words = f"{differing} of {right.size} elements differ"
        if self.closer is None:
            return Outcome.FAILED, words
        outcome, said = self.closer.integers(self.name, actual, right)
        return outcome, f"{words}: {said}"


def _within(actual: Array, right: Array, tolerance: Tolerance) -> tuple[Outcome, str]:
    """Judge an output by what a person allows, as `numpy.allclose` does; NaN is equal to NaN."""
    y, ref = actual.astype(np.float64), right.astype(np.float64)
    close = np.isclose(y, ref, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True)
    beyond = int(np.count_nonzero(~close))
    error = output_error(actual, right)
    words = (
        f"{beyond} of {close.size} elements beyond rtol {tolerance.rtol:g}, atol "
        f"{tolerance.atol:g}; median error {error.median:.1e}, largest {error.worst:.1e} of its root mean "
        "square"
    )
    return (Outcome.FAILED if beyond else Outcome.OK), words


def _infinite(actual: Array, right: Array) -> str:
    """What is wrong about numbers that are not finite; empty where nothing is."""
    y, ref = actual.astype(np.float64), right.astype(np.float64)
    wrong = int(np.count_nonzero(~np.isfinite(y) & np.isfinite(ref)))
    if wrong:
        return f"{wrong} elements are not finite, and should be"
    infinite = ~np.isfinite(ref)
    same = (y == ref) | (np.isnan(y) & np.isnan(ref))
    return "elements that should not be finite are not the same" if (infinite & ~same).any() else ""


def _blank(right: Array, *, unmoved: bool) -> str:
    """Why what is expected tells no right engine from a wrong one; empty where it does."""
    infinite = int(np.count_nonzero(~np.isfinite(right.astype(np.float64))))
    if 2 * infinite > right.size:
        return f"{infinite} of {right.size} elements expected are not finite"
    if not unmoved:
        return ""
    same = "zero" if not right.any() else "the same"
    return f"it should be {same} for all inputs tried"
