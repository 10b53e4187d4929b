"""The tuning loop tunes all problems of a network: a little of each, and then those first where most is to be won.

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
from wpk.search.loop.tune_problem import FEWEST, ProblemTuning
from wpk.search.loop.tuning import Session

FIRST_SHARE, FIRST_TRIALS = 0.25, 8
"""The part of a budget of time in which every problem is tried a little, in equal parts, and the schedules that are tried
of each then: what a searcher begins with, the models' first choices. What is left goes where most is still to be won."""

SEARCH_SHARE = 0.75
"""The part of a problem's time that its search may take; the rest is for comparing its finalists."""

AHEAD = 3
"""Problems whose first schedules compile while a problem before them is tried a little; in the second pass, whose
finalists do."""

LEAST_SHARE = 0.05
"""Problems with nothing to gain, as far as the models know, get this part of a mean share."""


def tune(
    tasks: Sequence[Task], session: Session, tell: Progress, first_share: float = FIRST_SHARE
) -> dict[Problem, TuningResult]:
    """Tune distinct problems. Every trial is stored before the next one is measured.

    Args:
        tasks: One a distinct problem.
        session: What they share.
        tell: Told of every trial: how many problems are finished, and how long the others will take.
        first_share: The part of a budget of time in which every problem is tried a little.

    Returns:
        The outcomes, in the order of tuning.

    Raises:
        StoreError: The store cannot be read or written.
        ValueError: Two tasks are of one problem.
    """
    if len({task.problem for task in tasks}) != len(tasks):
        raise ValueError("two tasks are of one problem")
    return _Loop(tasks, session, tell, first_share).tune()


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
    """Two passes over all problems, or one where time is not limited."""

    def __init__(
        self, tasks: Sequence[Task], session: Session, tell: Progress, first_share: float
    ) -> None:
        self._session, self._report, self._first_share = session, tell, first_share
        self._started = session.clock()
        seconds = session.budget.seconds
        self._end = self._started + (inf if seconds is None else seconds)
        self._all = [ProblemTuning(task, session) for task in in_order(tasks)]
        self._begun: list[ProblemTuning] = []
        self._results: dict[Problem, TuningResult] = {}

    def tune(self) -> dict[Problem, TuningResult]:
        waiting = self._all
        if self._first_share and self._end < inf:
            self._try_all()
            waiting = sorted(self._all, key=lambda tuning: -tuning.informed.gain)
        parts = shares([each.informed for each in waiting])
        for place, (tuning, share) in enumerate(zip(waiting, parts, strict=True)):
            tuning.expect(self._slice(share))
            self._prepare(waiting[place + 1 :], parts[place + 1 :])
            self._begun.append(tuning)
            self._tell()
            stop = tuning.search(self._slice(share), self._tell)
            self._results[tuning.task.problem] = tuning.finish(stop)
            self._tell()
        return self._results

    def _prepare(self, waiting: Sequence[ProblemTuning], parts: Sequence[float]) -> None:
        """Have compiled what the next problem will try first, and what those behind it would compare."""
        for following, share in zip(waiting[:1], parts, strict=False):
            following.expect(self._slice(share))
        for each in waiting[1:AHEAD]:
            each.expect_finalists()

    def _try_all(self) -> None:
        """Try a little of each problem, while the first schedules of those that follow compile."""
        begun = self._session.clock()
        end = begun + self._first_share * (self._end - begun)
        for place, tuning in enumerate(self._all):
            now, waiting = self._session.clock(), self._all[place:]
            until = now + max(0.0, end - now) / len(waiting)
            for each in waiting[1 : 1 + AHEAD]:
                each.expect(self._first_slice(each, until))
            tuning.search(self._first_slice(tuning, until), self._tell)

    def _first_slice(self, tuning: ProblemTuning, until: float) -> Slice:
        few = max(0, FIRST_TRIALS - tuning.known)
        return Slice(until, end=self._end, trials=few, is_first=True)

    def _slice(self, share: float) -> Slice:
        now, most = self._session.clock(), self._session.budget.trials
        kept = FEWEST * self._pace()
        waiting = len(self._all) - len(self._results)
        turn = share * max(0.0, self._end - now - kept * waiting)
        times = now + SEARCH_SHARE * turn, now + turn + kept, self._end
        if most is None:
            return Slice(*times)
        left = most - self._measured()
        return Slice(*times, min(left, ceil(left * share)))

    def _measured(self) -> int:
        return sum(tuning.measured for tuning in self._all)

    def _pace(self) -> float:
        """Seconds that a measurement took so far, of a search or side by side."""
        seconds, count = map(sum, zip(*(each.spent for each in self._all), strict=True))
        return seconds / max(1, count)

    def _tell(self) -> None:
        self._report("tuning problems", len(self._results), len(self._all), self._left())

    def _left(self) -> float | None:
        """Time left if each coming problem takes what those before it took, or what it may."""
        measured, most = self._measured(), self._session.effort.trials
        if not measured:
            return None
        usual = mean([each.measured for each in self._begun[:-1]] or [most])
        coming = usual * (len(self._all) - len(self._begun))
        here = max(0, most - len(self._begun[-1].tried)) if self._begun else 0
        left = max(0.0, self._end - self._session.clock())
        pace = (self._session.clock() - self._started) / measured
        return min(pace * (here + coming), left)
