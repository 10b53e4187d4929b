"""What the tuning loop is given, and what it hands back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from wpk.problems import Problem
from wpk.search.base import Searcher
from wpk.search.budget import Budget, Effort
from wpk.search.store import TuningStore
from wpk.search.store_key import Setup
from wpk.search.store_record import Run, Stage
from wpk.trial import Regime, Trial


@dataclass(frozen=True)
class Contender:
    """One template that competes for a problem.

    Attributes:
        template: Its name.
        version: Its version, as text.
        promise: Estimated seconds of its best schedule.
        searcher: Begins the search of its space with a seed; called only where what is known does
            not suffice.
    """

    template: str
    version: str
    promise: float
    searcher: Callable[[int], Searcher[Any]]


@dataclass(frozen=True)
class Rival:
    """A library that was asked to compute a problem too.

    Attributes:
        name: What trials of it have as their template.
        version: Its version.
        configurations: Its implementations, best guess first; schedules of its trials.
        refusals: Why there are none, or not of every form, in words.
    """

    name: str
    version: str
    configurations: tuple[tuple[tuple[str, int], ...], ...]
    refusals: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A problem to tune. Times in seconds.

    Attributes:
        problem: What to compute.
        count: How many operators of the network have this problem.
        estimate: Predicted time of one of them.
        bound: The time that no kernel can beat.
        floor: What a launch costs that depends on the one before.
        contenders: The templates that can carry it, the most promising first.
        rival: The library; None where none is to be tried.
    """

    problem: Problem
    count: int
    estimate: float
    bound: float
    floor: float
    contenders: tuple[Contender, ...]
    rival: Rival | None = None

    @property
    def gain(self) -> float:
        """Seconds of the network that tuning can win at most.

        That is, but for a factor that all problems share, the problem's share of the network's
        time, ``count * estimate``, times its headroom, ``1 - (bound + floor) / estimate``.
        """
        return self.count * max(0.0, self.estimate - self.bound - self.floor)


@dataclass(frozen=True)
class Request:
    """A schedule to measure.

    Attributes:
        problem: What it computes.
        template: Name of its template.
        version: The template's version, as text.
        schedule: Parameter names and values.
        stage: What it is measured for: what may be chosen is checked more thoroughly than what guides a search.
        regime: What the caches should hold; None for the regime that decides.
    """

    problem: Problem
    template: str
    version: str
    schedule: tuple[tuple[str, int], ...]
    stage: Stage = Stage.SEARCH
    regime: Regime | None = None


class Workbench(Protocol):
    """Compiles, checks and times schedules and library calls.

    An exception means that it is broken, not a schedule.
    """

    def expect(self, requests: Sequence[Request]) -> None:
        """Note what will be measured soon, in this order: it may be made ready meanwhile."""

    def drop(self, requests: Sequence[Request]) -> None:
        """Note that what was expected will not be measured."""

    def measure(self, requests: Sequence[Request]) -> Iterable[Trial]:
        """Yield one trial for each request, in their order, failures included, whether it was expected or not.

        The requests of one call are measured side by side. Each trial is stored as it comes, so a generator
        loses less to an interrupt than a list.
        """


class Stop(StrEnum):
    """Why the search of a problem ended."""

    AT_BOUND = "within 5 % of its bound and the floor of a launch"
    TRIALS_SPENT = "tried as many schedules as the effort allows"
    NO_IMPROVEMENT = "nothing improved for long"
    EXHAUSTED = "no schedules left that are worth trying"
    OUT_OF_BUDGET = "its part of the budget is spent"


@dataclass(frozen=True)
class Tried:
    """A trial with its template.

    Attributes:
        template: Its name.
        version: Its version, as text.
        trial: The schedule and its outcome.
        searcher: Who proposed the schedule; empty where that is not known.
    """

    template: str
    version: str
    trial: Trial
    searcher: str = ""


@dataclass(frozen=True)
class Tuned:
    """The outcome for a problem.

    Attributes:
        problem: The problem.
        best: The fastest, with what was measured side by side with the other finalists; None where
            nothing ran correctly.
        compared: Whether the finalists were compared; otherwise the budget was spent before.
        finalists: All that were compared, the best among them; those of the library too.
        tried: One a schedule as the search measured it, in the order of trying, known ones first.
        known: How many of these came from the store.
        stop: Why the search ended.
        lookups: What the store said, one a template or library.
        library: The library's implementations that were tried, likewise.
        refusals: Why the library offers none, or not of every form.
        elsewhere: The best schedule and the library's best in the other regime, which decides
            nothing.
    """

    problem: Problem
    best: Tried | None
    compared: bool
    finalists: tuple[Tried, ...]
    tried: tuple[Tried, ...]
    known: int
    stop: Stop
    lookups: tuple[str, ...]
    library: tuple[Tried, ...] = ()
    refusals: tuple[str, ...] = ()
    elsewhere: tuple[Tried, ...] = ()

    def best_of(self, *, library: bool) -> Tried | None:
        """The fastest finalist of the library, or of the templates; None where none ran."""
        names = {each.template for each in self.library}
        found = (each for each in self.finalists if (each.template in names) is library)
        return min(found, key=lambda each: each.trial.cost, default=None)


@dataclass(frozen=True)
class Progress:
    """Where a run is.

    Attributes:
        problem: The problem that is being tuned.
        place: Its number, from 1, in the order of tuning.
        problems: How many there are.
        tried: Schedules tried for it, known ones included.
        measured: Schedules that the run has measured, over all problems.
        best: Seconds of its best so far; infinite before the first that ran.
        eta: Seconds left if the rest goes on like this, at most the budget's; None when unknown.
        note: What has just happened, in words; empty for a trial like others.
    """

    problem: Problem
    place: int
    problems: int
    tried: int
    measured: int
    best: float
    eta: float | None
    note: str = ""


@dataclass(frozen=True)
class Session:
    """What all problems of a run share.

    Attributes:
        store: Where trials are found and kept.
        run: The run in it; its seed fixes the search.
        setup: Where and with what is measured.
        regime: State of the caches that decides.
        effort: How thoroughly each problem is searched.
        budget: What all of them may cost; None for what the effort says.
        bench: Measures schedules.
        clock: Seconds of a clock that only goes forward.
    """

    store: TuningStore
    run: Run
    setup: Setup
    regime: Regime
    effort: Effort
    budget: Budget | None
    bench: Workbench
    clock: Callable[[], float] = time.monotonic
