"""The tuning loop hands back a result for each problem."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wpk.problems import Problem
from wpk.trial import Trial, fastest


class Stop(StrEnum):
    """This is why the search of a problem ended."""

    AT_BOUND = "within 5 % of its bound and the floor of a launch"
    TRIALS_SPENT = "tried as many schedules as the effort allows"
    NO_IMPROVEMENT = "nothing improved for long"
    EXHAUSTED = "no schedules left that are worth trying"
    OUT_OF_BUDGET = "its part of the budget is spent"


@dataclass(frozen=True)
class TuningResult:
    """A result is the outcome of tuning a problem.

    Attributes:
        problem: The problem.
        compared: Whether the finalists were compared; otherwise the budget was spent before.
        finalists: What was measured side by side, of every family the best; one a candidate.
        tried: One a generated kernel as the search measured it, in the order of trying, known ones
            first.
        known: How many of these came from the store.
        stop: Why the search ended.
        lookups: What the store said, one a template or library.
        library: The libraries' implementations that were tried, likewise.
        refusals: Why a library offers none, or not of every form.
        elsewhere: The best finalist of each family in the other regime, which decides nothing.
    """

    problem: Problem
    compared: bool
    finalists: tuple[Trial, ...]
    tried: tuple[Trial, ...]
    known: int
    stop: Stop
    lookups: tuple[str, ...]
    library: tuple[Trial, ...] = ()
    refusals: tuple[str, ...] = ()
    elsewhere: tuple[Trial, ...] = ()

    @property
    def best(self) -> Trial | None:
        """The fastest finalist; None where nothing ran correctly."""
        return fastest(self.finalists)

    @property
    def best_of_each(self) -> dict[str, Trial]:
        """The fastest finalist of every family that has one."""
        families = dict.fromkeys(each.candidate.family for each in self.finalists)
        return {name: best for name in families if (best := self.best_of(name)) is not None}

    def best_of(self, family: str) -> Trial | None:
        """Return the fastest finalist of a family; None where none ran."""
        return fastest(each for each in self.finalists if each.candidate.family == family)
