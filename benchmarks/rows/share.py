"""How many of a network's operators generated kernels compute, where a library could have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rows.base import Context, Outcome, Row, RowError
from rows.goals import Goal, as_figures
from rows.tuned import kept_plans
from wpk.plans.plan import LibraryChoice, Step
from wpk.plans.plan_file import read_plan

GOALS = (
    Goal("share of generated kernels by number", 0.75),
    Goal("share of generated kernels by time", 0.60),
)
"""DeepCuts reports 75 % by number."""


@dataclass(frozen=True)
class Share:
    """Operators of which cuDNN had a correct implementation.

    Attributes:
        operators: How many.
        generated: Of these a generated kernel computes so many.
        seconds: Time of all, as chosen, each among its neighbours where that was measured.
        generated_seconds: Of those that a generated kernel computes.
    """

    operators: int = 0
    generated: int = 0
    seconds: float = 0.0
    generated_seconds: float = 0.0

    def __add__(self, other: Share) -> Share:
        """Of both."""
        return Share(
            self.operators + other.operators,
            self.generated + other.generated,
            self.seconds + other.seconds,
            self.generated_seconds + other.generated_seconds,
        )

    def figures(self) -> dict[str, Any]:
        """As a result file holds it."""
        return {
            "operators": self.operators,
            "by_number": self.generated / self.operators if self.operators else None,
            "by_time": self.generated_seconds / self.seconds if self.seconds else None,
        }


def rows() -> list[Row]:
    """One, over all plans of networks that the other rows tuned."""
    claim = "generated kernels are chosen where cuDNN had a correct candidate"
    return [Row("share", claim, _measure, is_last=True, goals=GOALS)]


def _measure(context: Context) -> Outcome:
    plans = kept_plans(context)
    shares = {name: share_of(read_plan(path).plan.steps) for name, path in plans.items()}
    return judge(shares)


def share_of(steps: Sequence[Step]) -> Share:
    """Of a plan's steps. What cuDNN could not compute correctly does not count."""
    total = Share()
    for step in steps:
        measured = step.evidence.measurement
        if measured is None or measured.library is None:
            continue
        seconds = measured.in_engine_seconds or measured.median_seconds
        ours = not isinstance(step.choice, LibraryChoice)
        total += Share(1, int(ours), seconds, seconds * ours)
    return total


def judge(shares: dict[str, Share]) -> Outcome:
    """Hold the shares of all plans together to the goals.

    Raises:
        RowError: There is no operator that cuDNN could compute.
    """
    total = sum(shares.values(), Share())
    if not total.operators:
        raise RowError("no operator that cuDNN could compute is in a plan: measure networks first")
    parts = (total.generated / total.operators, total.generated_seconds / total.seconds)
    judged = [goal.judged(part) for goal, part in zip(GOALS, parts, strict=True)]
    by_number, by_time = parts
    summary = (
        f"{by_number:.0%} of {total.operators} operators, {by_time:.0%} of their time, "
        f"in {len(shares)} plans"
    )
    figures = {"plans": {name: share.figures() for name, share in shares.items()}}
    return Outcome(
        all(each.reached for each in judged),
        summary,
        figures | total.figures() | as_figures(judged),
    )
