"""What a row is asked to reach, and whether what it measured reaches it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wpk.plan.measurement import Ratio


@dataclass(frozen=True)
class Goal:
    """A figure to reach.

    Attributes:
        what: The figure in words, e.g. ``speedup over the best baseline``.
        asked: What it should be.
        at_most: Whether less is better; else it should be at least what is asked.
    """

    what: str
    asked: float
    at_most: bool = False

    def __str__(self) -> str:
        """``speedup over the best baseline >= 2``."""
        return f"{self.what} {'<=' if self.at_most else '>='} {self.asked:g}"

    def judged(self, value: float, low: float | None = None, high: float | None = None) -> Judged:
        """Hold a figure, which the noise puts between ``low`` and ``high``, to the goal."""
        reached = value <= self.asked if self.at_most else value >= self.asked
        low, high = value if low is None else low, value if high is None else high
        return Judged(self, value, low, high, reached)

    def judged_ratio(self, ratio: Ratio) -> Judged:
        """Hold a ratio of two times to the goal."""
        return self.judged(ratio.median, ratio.low, ratio.high)


@dataclass(frozen=True)
class Judged:
    """A figure that was measured, beside its goal.

    Attributes:
        goal: What was asked.
        value: What was measured.
        low: The least that the noise allows.
        high: And the most.
        reached: Whether the value is what was asked; the noise is no excuse.
    """

    goal: Goal
    value: float
    low: float
    high: float
    reached: bool

    def __str__(self) -> str:
        """``speedup 1.52 (1.50 to 1.55; asked >= 2)``."""
        sign = "<=" if self.goal.at_most else ">="
        band = f"{self.low:.2f} to {self.high:.2f}; " if self.low < self.high else ""
        return f"{self.goal.what} {self.value:.2f} ({band}asked {sign} {self.goal.asked:g})"


def as_figures(judged: Sequence[Judged]) -> dict[str, Any]:
    """What a row's figures say of its goals: under ``goals``, where the summary looks for them."""
    return {"goals": [asdict(each) | {"goal": str(each.goal)} for each in judged]}


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio:
    """Of the medians; its band is what comes out where all are at the ends of theirs.

    Raises:
        ValueError: There are none.
    """
    if not ratios:
        raise ValueError("no ratios have no mean")
    return Ratio(
        _mean([each.median for each in ratios]),
        _mean([each.low for each in ratios]),
        _mean([each.high for each in ratios]),
    )


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
