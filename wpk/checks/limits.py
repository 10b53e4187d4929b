"""By how much an output of a whole model may differ, and from which limit on that says nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wpk.dtypes import Precision


@dataclass(frozen=True)
class ErrorLimit:
    """Largest allowed error of an output element, relative to the RMS of the output."""

    median: float
    worst: float

    def widened(self, error: OutputDistance, factor: float) -> ErrorLimit:
        """Return this limit, or a multiple of an error where that is more."""
        return ErrorLimit(
            max(self.median, factor * error.median), max(self.worst, factor * error.worst)
        )


LIMITS: dict[Precision, ErrorLimit] = {
    # Both sides compute in fp32 in different orders: sqrt(layers x terms) roundings of 6e-8.
    Precision.FP32: ErrorLimit(1e-5, 5e-5),
    # Operands have 11 bits: 5e-4 each, averaged over the terms of a product, grown over 50 to 100
    # layers; small outputs of a depthwise layer or of a normalised row make the worst element.
    Precision.TF32: ErrorLimit(5e-3, 4e-2),
    Precision.FP16: ErrorLimit(5e-3, 4e-2),
    # The same with 8 bits: 4e-3 each.
    Precision.BF16: ErrorLimit(3e-2, 2e-1),
    # As many roundings as in fp32, of 1.1e-16 each: outputs of fp64 that nothing narrower leads to.
    Precision.FP64: ErrorLimit(1e-5 * 2.0**-29, 5e-5 * 2.0**-29),
}
"""What whole models may differ by. Operators alone are held to bounds derived for each element
(`wpk.checks.error_bounds`); these limits catch what only shows when they are put together."""

ROUNDING_FACTOR = 2.0
"""A model may amplify the rounding of its activations beyond the limits, whoever computes it. What
rounding the values in memory alone changes in the float64 reference is allowed so many times."""


@dataclass(frozen=True)
class OutputDistance:
    """Errors of one output, relative to its RMS."""

    median: float
    worst: float


BLIND = ErrorLimit(median=0.1, worst=0.5)
"""Limits from which on a comparison says nothing.

Let an output be unrelated to what is expected, both normal with the same RMS: their difference has
sqrt(2) of it, and an element is within t of the RMS with probability erf(t / 2): 6 % for 0.1. To pass
the median at least half of the elements must be: 6 % for an output of one element, 2e-4 on three
seeds, 2e-5 for eleven elements. Elements that are zero by mistake are within 0.5 with probability
38 %, unrelated ones with 28 %: a fault that hits ten elements passes the worst with less than 1e-4.
Wider limits let wrong outputs pass that anybody would see."""


def allowed(precision: Precision, rounded: OutputDistance | None) -> ErrorLimit:
    """The limit of an output, given what the rounding of values in memory alone does to it."""
    if rounded is None or not np.isfinite(rounded.worst):
        return LIMITS[precision]
    return LIMITS[precision].widened(rounded, ROUNDING_FACTOR)
