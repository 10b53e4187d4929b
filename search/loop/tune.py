"""The tuning loop tunes all problems of a network, those first where most is to be won.

A run can be interrupted at any moment. Its trials are in the store; to resume it is to do the same
again, since every trial that is known counts. The same seed and the same measured times give the
same result, as long as it is not the clock that ends the search. While a problem is tuned, the first
schedules of the next one compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf
from statistics import mean

from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.loop.budget import Slice
from wpk.search.loop.result import TuningResult
from wpk.search.loop.task import Task
from wpk.search.loop.tune_problem import ProblemTuning
from wpk.search.loop.tuning import Session

SEARCH_SHARE = 0.9
"""The part of a problem's time that its search may take; the rest is for comparing its finalists."""

LEAST_SHARE = 0.05
"""Problems with nothing to gain, as far as the models know, get this part of a mean share."""


def tune(tasks: Sequence[Task], session: Session, tell: Progress) -> dict[Problem, TuningResult]:
    """Tune distinct problems. Every trial is stored before the next one is measured.

    Args:
        tasks: One a distinct problem.
        session: What they share.
        tell: Told of every trial: how many problems are finished, and how long the others will take.

    Returns:
        The outcomes, in the order of tuning.

    Raises:
        StoreError: The store cannot be read or written.
        ValueError: Two tasks are of one problem.
    """
    if len({task.problem for task in tasks}) != len(tasks):
        raise ValueError("two tasks are of one problem")
    return _Loop(tasks, session, tell).tune()


def in_order(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks, those first where most is to be won; ties keep their order."""
    return sorted(tasks, key=lambda task: -task.gain)


def shares(tasks: Sequence[Task]) -> list[float]:
    """Return the part of what is left of the budget that each task may spend when its turn comes.

    Parts are in proportion to what is to be won. What a task does not spend falls to those after it, and
    the last one may spend all that is left.
    """
    gains = [task.gain for task in tasks]
    least = LEAST_SHARE * mean(gains) if any(gains) else 1.0
    weights = [gain + least for gain in gains]
    return [weight / sum(weights[place:]) for place, weight in enumerate(weights)]


class _Loop:
    """One pass over all problems."""

    def __init__(self, tasks: Sequence[Task], session: Session, tell: Progress) -> None:
        self._tasks = in_order(tasks)
        self._session, self._report = session, tell
        self._started = session.clock()
        seconds = session.budget.seconds
        self._end = self._started + (inf if seconds is None else seconds)
        self._begun: list[ProblemTuning] = []
        self._results: dict[Problem, TuningResult] = {}

    def tune(self) -> dict[Problem, TuningResult]:
        turns = map(self._expect, self._tasks, shares(self._tasks))
        following = next(turns, None)
        while following is not None:
            (tuning, share), following = following, next(turns, None)
            self._begun.append(tuning)
            self._tell()
            stop = tuning.search(self._slice(share), self._tell)
            self._results[tuning.task.problem] = tuning.finish(stop)
            self._tell()
        return self._results

    def _expect(self, task: Task, share: float) -> tuple[ProblemTuning, float]:
        """Prepare a problem's turn: what it will try first compiles from now on."""
        tuning = ProblemTuning(task, self._session)
        tuning.expect(self._slice(share))
        return tuning, share

    def _slice(self, share: float) -> Slice:
        now, most = self._session.clock(), self._session.budget.trials
        until = now + SEARCH_SHARE * share * max(0.0, self._end - now)
        if most is None:
            return Slice(until, self._end)
        left = most - sum(tuning.measured for tuning in self._begun)
        return Slice(until, self._end, min(left, ceil(left * share)))

    def _tell(self) -> None:
        self._report("tuning problems", len(self._results), len(self._tasks), self._left())

    def _left(self) -> float | None:
        """Time left if each coming problem takes what those before it took, or what it may."""
        now = self._session.clock()
        *before, tuning = self._begun
        measured = sum(each.measured for each in self._begun)
        if not measured:
            return None
        pace = (now - self._started) / measured
        usual = mean([each.measured for each in before] or [self._session.effort.trials])
        coming = usual * (len(self._tasks) - len(self._begun))
        here = max(0, self._session.effort.trials - len(tuning.tried))
        return min(pace * (here + coming), max(0.0, self._end - now))
