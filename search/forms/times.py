"""What operators take: measured where all that are compared were measured, else as the models predict.

A sum of measured and of predicted times would compare the models' errors, which are alike for a product with and
without its epilogue; so predicted times are compared with predicted ones only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wpk.problems import Problem
from wpk.search.forms.form import Difference

ERROR = 1.13
"""Factor by which the least estimate of a problem is off, as the root of the mean square: of its fastest kernel, over
the 27 problems all of whose kernels were measured on an H200 (`tests/replay`). The largest is 1.39."""

MARGIN = ERROR**2
"""Factor beyond which models are believed: both sides of a comparison may be off, in opposite directions."""

NOISE = 0.99
"""What counts as faster where times were measured: beyond the noise of medians of one kernel."""

Estimate = Callable[[Problem], float]
"""Predicted seconds of a problem's best kernel."""


@dataclass(frozen=True)
class Comparison:
    """Two sides of a difference, each in seconds.

    Attributes:
        usual: Of the operators that are gone.
        other: Of those that are new.
    """

    usual: float
    other: float

    @property
    def gain(self) -> float:
        """Seconds that the new operators save."""
        return self.usual - self.other


def predicted(between: Difference, estimate: Estimate) -> Comparison:
    """Compare by the models.

    Raises:
        ScheduleError: No template computes one of the problems.
    """
    return Comparison(*(_total(side, estimate) for side in (between.gone, between.new)))


def measured(between: Difference, seconds: Mapping[Problem, float]) -> Comparison | None:
    """Compare by measured times; None where one is not known."""
    if not between.problems <= seconds.keys():
        return None
    return Comparison(*(_total(side, seconds.__getitem__) for side in (between.gone, between.new)))


def is_hopeless(by_models: Comparison) -> bool:
    """Whether a form is slower than the models may err by, so that it is not worth measuring."""
    return by_models.other > MARGIN * by_models.usual


def is_certain(by_models: Comparison) -> bool:
    """Whether a form is faster than the models may err by, so that it is taken without measuring."""
    return MARGIN * by_models.other < by_models.usual


def is_better(by_models: Comparison) -> bool:
    """Whether a form is faster by estimates, however certain that is: beyond what would be noise if it were measured."""
    return by_models.other < NOISE * by_models.usual


def promise(by_models: Comparison) -> tuple[float, float]:
    """Return what orders forms that are worth measuring: the gain that is left where one side is off, then the gain.

    Time goes first to what the models are surest of; a small part of much that both forms have in common comes
    behind it, however many seconds it is.
    """
    return max(0.0, by_models.usual - ERROR * by_models.other), by_models.gain


def is_faster(by_measuring: Comparison) -> bool:
    """Whether a form is faster beyond the noise."""
    return by_measuring.other < NOISE * by_measuring.usual


def _total(problems: Counter[Problem], seconds: Callable[[Problem], float]) -> float:
    return sum(count * seconds(problem) for problem, count in problems.items())
