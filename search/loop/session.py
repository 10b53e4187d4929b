"""What all problems of a tuning run share: the store, the budget, and who measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from wpk.bench import Request
from wpk.problems import Problem
from wpk.search.loop.budget import Budget, Effort
from wpk.search.store import Run, Setup, TuningStore
from wpk.trial import Regime, Trial


class Workbench(Protocol):
    """Compiles, checks and times candidates. An exception means that it is broken, not a candidate."""

    def expect(self, requests: Sequence[Request]) -> None:
        """Note what will be measured soon, in this order: it may be made ready meanwhile."""

    def drop(self, requests: Sequence[Request]) -> None:
        """Note that what was expected will not be measured."""

    def measure(self, requests: Sequence[Request]) -> Iterable[Trial]:
        """Yield one trial for each request, in their order, failures included, whether it was expected or not.

        The requests of one call are measured side by side. Each trial is stored as it comes, so a generator
        loses less to an interrupt than a list.
        """


@dataclass(frozen=True)
class RunProgress:
    """How far a run has come.

    Attributes:
        problem: What is being tuned.
        finished: Problems that were tuned before it, or with it where it is done.
        problems: How many there are.
        tried: Candidates tried for it, known ones included.
        measured: Candidates that the run has measured, over all problems.
        best: Seconds of its best so far; infinite before the first that ran.
        eta: Seconds left if the rest goes on like this, at most the budget's; None when unknown.
        note: What has just happened, in words; empty for a trial like others.
    """

    problem: Problem
    finished: int
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
        bench: Measures candidates.
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
