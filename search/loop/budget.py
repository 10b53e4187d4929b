"""Levels of effort and budgets say how much is measured.

    effort   trials a problem   of a library   patience   finalists   rounds   time unless --budget says
    0                       8              3          8           2        1      1 min
    1                      64             10         32           3        3      5 min
    2                     256             40         96           4        5     30 min
    3                    1024            all        384           8        7    no limit

The time is that of the whole run, from the model's file to its last check. What comes before measuring and
behind it takes as long as it takes: measuring gets what is left, and at least `MEASURING_SHARE` of the whole, in which
whole engines are compared, too, and waiting for references is not counted (`Watch`). So a run takes at most 1.3 times its budget where all else takes at most 0.8
of it; where measuring gets more than is left, the log says so.

Trials known from the store count like fresh ones, since they cost nothing more. Trials of a library's
implementations, of those that it thinks best, take a share of a problem's time and are not counted as trials. Patience is the number of
trials without an improvement after which a problem is left alone. Finalists are the best
schedules, which are measured again side by side in so many rounds, on top of the trials.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from wpk.errors import WpkError
from wpk.options import SearchOptions

_log = logging.getLogger(__name__)


class BudgetError(WpkError):
    """A budget or level of effort cannot be understood."""

    exit_code = 2


@dataclass(frozen=True)
class Effort:
    """An effort says how thoroughly each problem is searched.

    Attributes:
        trials: Schedules tried for a problem at most, known ones included.
        patience: Trials without an improvement after which its search stops.
        finalists: Schedules that are compared in the end.
        rounds: How many times each finalist is measured.
        seconds: For the whole network, where no budget is given; None for no limit.
        library: Implementations of a library that are tried at most.
    """

    trials: int
    patience: int
    finalists: int
    rounds: int
    seconds: float | None
    library: int


EFFORTS = (
    Effort(trials=8, patience=8, finalists=2, rounds=1, seconds=60.0, library=3),
    Effort(trials=64, patience=32, finalists=3, rounds=3, seconds=300.0, library=10),
    Effort(trials=256, patience=96, finalists=4, rounds=5, seconds=1800.0, library=40),
    Effort(trials=1024, patience=384, finalists=8, rounds=7, seconds=None, library=10_000),
)
"""By level, as the table above."""


@dataclass(frozen=True)
class Budget:
    """A budget is what a run, or a part of it, may spend.

    Attributes:
        seconds: Wall clock; None for no limit.
        trials: Schedules measured, known ones not counted; None for no limit.
    """

    seconds: float | None = None
    trials: int | None = None

    def less(self, seconds: float, trials: int = 0) -> Budget:
        """Return what is left of it when so much has been spent."""
        return Budget(
            None if self.seconds is None else max(0.0, self.seconds - seconds),
            None if self.trials is None else max(0, self.trials - trials),
        )


MEASURING_SHARE = 0.5
"""The part of a run's time that measuring gets at least, whatever the rest of the run takes."""

ENGINES_SHARE = 0.15
"""The part of a run's time that is kept for comparing whole engines."""


class Watch:
    """The watch tells measuring what is left to it of a run's time."""

    def __init__(
        self, budget: Budget, begun: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Describe the run.

        Args:
            budget: Of the run.
            begun: When it began, on the clock.
            clock: Seconds that only go forward.
        """
        self._budget, self._begun, self._clock = budget, begun, clock
        self._end = inf

    def start(self, behind: float, measured: float = 0.0) -> None:
        """Say until when there is time to measure; the log says where that makes the run longer than its budget.

        Args:
            behind: Seconds that what comes behind measuring will take.
            measured: Seconds that measuring has had already.
        """
        whole = self._budget.seconds
        if whole is None:
            return
        now, share = self._clock(), MEASURING_SHARE * whole
        left, least = self._begun + whole - behind - now, max(0.0, share - measured)
        self._end = now + max(least, left)
        if left < least:
            before = now - measured - self._begun
            _log.warning(
                "a budget of %.0f s is too little: %.0f s passed before measuring, checks will take some %.0f s, and "
                "measuring gets %.0f s at least, so that the run takes about %.0f s",
                *(whole, before, behind, share, now - self._begun + least + behind),
            )

    def for_trials(self) -> Budget:
        """Return what may be spent on trials from now on; the run's trials are for whoever counts them."""
        return self._left(ENGINES_SHARE)

    def for_engines(self) -> float | None:
        """Return the seconds that comparing engines may take from now on; None for no limit."""
        return self._left(0.0).seconds

    def _left(self, kept: float) -> Budget:
        whole = self._budget.seconds
        if whole is None:
            return self._budget
        return replace(self._budget, seconds=max(0.0, self._end - kept * whole - self._clock()))


@dataclass(frozen=True)
class Slice:
    """A slice is what one problem may spend of the budget.

    Attributes:
        until: Time of the session's clock at which its search ends.
        over: Time at which comparing its finalists should be over.
        end: Time at which the run ends, whatever has been tried.
        trials: Schedules that it may measure.
        is_first: Whether it comes again later, when all others have been tried, too: nothing is compared yet.
    """

    until: float = inf
    over: float = inf
    end: float = inf
    trials: float = inf
    is_first: bool = False


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d+(?:\.\d*)?)\s*([smh])")
_TRIALS = re.compile(r"(\d+)\s*trials?")


def parse_budget(text: str) -> Budget:
    """Return a budget as people write it: ``90s``, ``30m``, ``1.5h`` or ``400 trials``.

    Raises:
        BudgetError: It is written in another way, or is nothing.
    """
    if match := _TIME.fullmatch(text.strip()):
        budget = Budget(seconds=float(match[1]) * _UNITS[match[2]])
    elif match := _TRIALS.fullmatch(text.strip()):
        budget = Budget(trials=int(match[1]))
    else:
        budget = Budget(seconds=0.0)
    if not (budget.seconds or budget.trials):
        raise BudgetError(
            f"{text!r} is no budget", fix="write it like 90s, 30m, 1.5h or '400 trials'"
        )
    return budget


def share_of(search: SearchOptions, parts: int) -> SearchOptions:
    """Return options whose budget is that of one of several searches, which may cost so much together.

    Raises:
        BudgetError: The budget or the effort cannot be understood.
    """
    if search.budget is not None:
        whole = parse_budget(search.budget)
    else:
        whole = Budget(seconds=effort_of(search.effort).seconds)
    if whole.trials is not None:
        return replace(search, budget=f"{max(1, whole.trials // parts)} trials")
    return (
        search if whole.seconds is None else replace(search, budget=f"{whole.seconds / parts:.3f}s")
    )


def effort_of(level: int) -> Effort:
    """Return the effort of a level.

    Raises:
        BudgetError: There is no such level.
    """
    if level not in range(len(EFFORTS)):
        raise BudgetError(
            f"effort {level} is none of 0 to {len(EFFORTS) - 1}",
            fix="choose 0 for a minute, 1 for minutes, 2 for half an hour, 3 for as long as it takes",
        )
    return EFFORTS[level]
