"""The tuning loop: all problems of a network, those first where most is to be won.

A run can be interrupted at any moment. Its trials are in the store; to resume it is to do the same
again, since every trial that is known counts. The same seed and the same measured times give the
same result, as long as it is not the clock that ends the search. While a problem is tuned, the first
schedules of the next one compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from statistics import mean

from wpk.problems import Problem
from wpk.search.loop.budget import Slice, limits, split
from wpk.search.loop.result import TuningResult
from wpk.search.loop.session import RunProgress, Session
from wpk.search.loop.task import Task
from wpk.search.loop.tune_problem import ProblemTuning

SEARCH_SHARE = 0.9
"""The part of a problem's time that its search may take; the rest is for comparing its finalists."""

LEAST_SHARE = 0.05
"""Problems with nothing to gain, as far as the models know, get this part of a mean share."""


def tune(
    tasks: Sequence[Task], session: Session, progress: Callable[[RunProgress], None]
) -> dict[Problem, TuningResult]:
    """Tune distinct problems. Every trial is stored before the next one is measured.

    Args:
        tasks: One a distinct problem.
        session: What they share.
        progress: Is told of every trial, and of what begins and ends.

    Returns:
        The outcomes, in the order of tuning.

    Raises:
        StoreError: The store cannot be read or written.
        ValueError: Two tasks are of one problem.
    """
    if len({task.problem for task in tasks}) != len(tasks):
        raise ValueError("two tasks are of one problem")
    return _Loop(tasks, session, progress).tune()


def in_order(tasks: Sequence[Task]) -> list[Task]:
    """The tasks, those first where most is to be won; ties keep their order."""
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


@dataclass(frozen=True)
class _Turn:
    """A problem that is, or will be, tuned with its share of what is left."""

    task: Task
    tuning: ProblemTuning
    share: float


class _Loop:
    """One pass over all problems."""

    def __init__(
        self, tasks: Sequence[Task], session: Session, progress: Callable[[RunProgress], None]
    ) -> None:
        self._tasks = in_order(tasks)
        self._session = session
        self._progress = progress
        self._started = session.clock()
        self._limits = limits(session.effort, session.budget)
        self._end = self._started + (inf if self._limits.seconds is None else self._limits.seconds)
        self._done: list[ProblemTuning] = []
        self._finished = 0

    def tune(self) -> dict[Problem, TuningResult]:
        found: dict[Problem, TuningResult] = {}
        turns = map(self._expect, self._tasks, shares(self._tasks))
        following = next(turns, None)
        while following is not None:
            turn, following = following, next(turns, None)
            task, tuning = turn.task, turn.tuning
            self._done.append(tuning)
            self._tell(task, "; ".join(tuning.lookups))
            stop = tuning.search(self._slice(turn.share), partial(self._tell, task))
            found[task.problem] = tuning.finish(stop)
            self._finished += 1
            self._tell(task, f"stopped: {stop}")
        return found

    def _expect(self, task: Task, share: float) -> _Turn:
        """Prepare a problem's turn: what it will try first compiles from now on."""
        tuning = ProblemTuning(task, self._session)
        tuning.expect(self._slice(share))
        return _Turn(task, tuning, share)

    def _slice(self, share: float) -> Slice:
        now = self._session.clock()
        until = now + SEARCH_SHARE * share * max(0.0, self._end - now)
        if self._limits.trials is None:
            return Slice(until, self._end)
        left = self._limits.trials - sum(tuning.measured for tuning in self._done)
        return Slice(until, self._end, split(left, share))

    def _tell(self, task: Task, note: str = "") -> None:
        tuning = self._done[-1]
        progress = RunProgress(
            problem=task.problem,
            finished=self._finished,
            problems=len(self._tasks),
            tried=len(tuning.tried),
            measured=sum(each.measured for each in self._done),
            best=tuning.best,
            eta=self._eta(),
            note=note,
        )
        self._progress(progress)

    def _eta(self) -> float | None:
        """Time left if each coming problem takes what those before it took, or what it may."""
        now = self._session.clock()
        *before, tuning = self._done
        measured = sum(each.measured for each in self._done)
        if not measured:
            return None
        pace = (now - self._started) / measured
        usual = mean([each.measured for each in before] or [self._session.effort.trials])
        coming = usual * (len(self._tasks) - len(self._done))
        here = max(0, self._session.effort.trials - len(tuning.tried))
        return min(pace * (here + coming), max(0.0, self._end - now))
