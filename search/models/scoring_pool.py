"""Processes that score the schedules of many problems beside whatever this process does."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from typing import Self

from wpk.errors import ScheduleError
from wpk.problems import Problem
from wpk.process import ChildLostError, ChildProcess, ChildTimeoutError
from wpk.progress import Progress
from wpk.schedules import TEMPLATES
from wpk.search.models.pruning import WAVES, Pruning
from wpk.search.models.scoring_answer import ScoredProblem
from wpk.search.models.static_search import Shortlists, in_turn, shortlist_all, shortlist_problems
from wpk.targets import Target

MANY_NODES = 64
"""Of a model, from which on processes pay: each takes most of a second until it is there, and such a model's lowering takes
as long."""

MOST_PROCESSES = 4
"""More would end hardly sooner: a network has some dozens of problems, of which each takes a few hundredths of a second."""

_LIMIT_SECONDS = 300.0

_log = logging.getLogger(__name__)


class ScoringPool:
    """Scores problems for one target, by all templates but those that are left out.

    Without processes, before `begin` or where that starts none, this process scores them. Use it as a context manager:
    leaving it, also by Ctrl-C, ends every process.
    """

    def __init__(
        self,
        target: Target,
        skip: Collection[str] = (),
        pruning: Pruning = WAVES,
        *,
        processes: int | None = None,
    ) -> None:
        """Describe the pool; nothing is started yet.

        Args:
            target: The GPU.
            skip: Names of templates not to use.
            pruning: What keeps schedules.
            processes: How many; None is a quarter of this process's cores, at most `MOST_PROCESSES`.
        """
        cores = len(os.sched_getaffinity(0))
        self._count = min(MOST_PROCESSES, cores // 4) if processes is None else processes
        self._target, self._skip, self._pruning = target, tuple(skip), pruning
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()  # of what follows
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._closing = False

    def __enter__(self) -> Self:
        """Nothing to do: `begin` starts processes."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End every process."""
        self.close()

    def begin(self, nodes: int) -> None:
        """Start the processes, if that pays for a model of so many nodes; they are ready while it is lowered."""
        if nodes < MANY_NODES or not self._count or self._threads is not None:
            return
        self._idle = [_start() for _ in range(self._count)]
        self._threads = ThreadPoolExecutor(self._count, "wpk-scoring")

    def shortlists(self, problems: Iterable[Problem], tell: Progress) -> Iterator[Shortlists]:
        """Shortlist every template for each distinct problem, in order, as `shortlist_problems` does.

        Raises:
            ScheduleError: No template computes one of them; says why of each.
        """
        threads = self._threads
        if threads is None:
            asked = TEMPLATES, self._target, self._skip, tell, self._pruning
            yield from shortlist_problems(problems, *asked)
            return
        begun: list[Future[Shortlists]] = []

        def begin(problem: Problem) -> Callable[[], Shortlists]:
            begun.append(threads.submit(self._scored, problem))
            return begun[-1].result

        try:
            yield from in_turn(problems, begin, tell)
        finally:
            for future in begun:
                future.cancel()

    def close(self) -> None:
        """End every process, and what was not scored yet."""
        with self._lock:
            self._closing = True
            for child in self._busy:
                child.kill()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        while self._idle:
            self._idle.pop().end()
        self._closing = False

    def _scored(self, problem: Problem) -> Shortlists:
        """What a process says of a problem; this one, where that ended."""
        with self._lock:
            child = self._idle.pop() if self._idle else None
            if child is not None:
                self._busy.add(child)
        found = None if child is None else self._asked(child, problem)
        if found is not None:
            return found.shortlists(problem, self._target)
        if self._closing:
            raise CancelledError
        return shortlist_all(problem, TEMPLATES, self._target, self._skip, self._pruning)

    def _asked(self, child: ChildProcess, problem: Problem) -> ScoredProblem | None:
        """The answer of a process that is idle again behind it; None where it ended instead.

        Raises:
            ScheduleError: No template computes the problem.
        """
        ask = partial(child.ask, answer=ScoredProblem, limit_seconds=_LIMIT_SECONDS)
        try:
            found: ScoredProblem = ask(
                "score", problem, self._target, self._skip, self._pruning.name
            )
        except (ChildLostError, ChildTimeoutError) as lost:
            if not self._closing:
                _log.warning(
                    "a process that scores schedules ended (%s): others go on, and this one scores what is left. "
                    "To have it go on: free memory on this machine",
                    str(lost) or f"it took longer than {_LIMIT_SECONDS:g} s",
                )
            return None
        finally:
            with self._lock:
                self._busy.remove(child)
                if child.is_alive:
                    self._idle.append(child)
        return found


def _start() -> ChildProcess:
    return ChildProcess("wpk.search.models.scoring_worker", errors=(ScheduleError,))
