"""A bench for the tuning loop: measuring is replaying the models' estimates."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.plans.spaces import whole_space

from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Matmul
from wpk.search.loop.budget import Budget, Effort
from wpk.search.loop.result import TuningResult
from wpk.search.loop.task import Contender, Task
from wpk.search.loop.tune import tune
from wpk.search.loop.tuning import Session
from wpk.search.searchers.random_search import RandomSearch
from wpk.search.store.key import Setup
from wpk.search.store.records import Stage
from wpk.search.store.store import TuningStore
from wpk.targets.registry import find_target
from wpk.trial import Regime, Status, Trial
from wpk.trial_bench.request import Request

TARGET = find_target("h200")


class DummyClock:
    """Goes forward only when something is measured."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class DummyRunner:
    """Answers with the models' estimates; a second a trial; breaks off where it is told to.

    Attributes:
        requests: All that was measured, in order.
        calls: How many at once.
        expected: All that the search was to measure soon, in order.
        finals: All that was to be compared if nothing better came, in order.
        waiting: What of both was neither measured nor dropped.
        break_after: Trials after which it is interrupted.
        spoil: Gives another outcome for a request, if it wants to.
    """

    def __init__(self, clock: DummyClock, templates: dict[str, Any]) -> None:
        self.requests: list[Request] = []
        self.calls: list[int] = []
        self.expected: list[Request] = []
        self.finals: list[Request] = []
        self.waiting: list[Request] = []
        self.break_after: float = float("inf")
        self.error: type[BaseException] = KeyboardInterrupt
        self.spoil: Callable[[Request], Trial | None] = lambda request: None
        self._clock, self._templates = clock, templates

    def expect(self, requests: Sequence[Request]) -> None:
        self.expected += [each for each in requests if each.stage is Stage.SEARCH]
        self.finals += [each for each in requests if each.stage is Stage.FINAL]
        self.waiting += requests

    def drop(self, requests: Sequence[Request]) -> None:
        self.waiting = [each for each in self.waiting if each not in requests]

    def measure(self, requests: Sequence[Request]) -> Iterator[Trial]:
        self.calls.append(len(requests))
        self.drop(requests)
        for request in requests:
            if len(self.requests) >= self.break_after:
                raise self.error
            self.requests.append(request)
            self._clock.now += 1.0
            yield self.spoil(request) or self.trial(request)

    def trial(self, request: Request) -> Trial:
        columns = {n: np.asarray([value]) for n, value in request.candidate.configuration}
        template = self._templates[request.candidate.maker.name]
        work = template.work(request.problem, columns, TARGET)
        (seconds,) = estimate(work, bound(request.problem, TARGET), TARGET)
        return Trial(request.candidate, Status.OK, (float(seconds), float(seconds)))


class Bench:
    """A store, a runner and tasks."""

    def __init__(self, store: TuningStore, templates: dict[str, Any]) -> None:
        self.store, self.templates = store, templates
        self.clock = DummyClock()
        self.runner = DummyRunner(self.clock, templates)
        self.told: list[tuple[int, int, float | None]] = []  # finished, all, seconds left
        self.searchers = 0
        self.setup = Setup("h200", "sm_90a", "nvrtc 13.0.88", "580.65")
        self.effort = Effort(
            trials=24, patience=1000, finalists=3, rounds=2, seconds=None, library=2
        )

    def task(self, problem: Matmul, count: int = 1, estimated: float = 1e-3) -> Task:
        contenders = tuple(self._contender(problem, name) for name in self.templates)
        limit = bound(problem, TARGET).seconds
        return Task(problem, count, estimated, limit, 0.0, contenders)

    def _contender(self, problem: Matmul, name: str) -> Contender:
        template = self.templates[name]

        def search(seed: int) -> RandomSearch:
            self.searchers += 1
            return RandomSearch(whole_space(problem, template, TARGET), seed)

        return Contender(template.maker, 1.0, search)

    def session(self, seed: int = 1, run: str = "", **changes: Any) -> Session:
        entry = self.store.resume_run(run) if run else self.store.begin_run(seed)
        session = Session(
            store=self.store,
            run=entry,
            setup=self.setup,
            regime=Regime.COLD,
            effort=self.effort,
            budget=Budget(),
            bench=self.runner,  # type: ignore[arg-type]
            clock=self.clock,
        )
        return replace(session, **changes)

    def tell(self, stage: str, done: int, total: int, left: float | None = None) -> None:
        self.told.append((done, total, left))

    def searched(self) -> list[Request]:
        """What waits to be measured by the search."""
        return [each for each in self.runner.waiting if each.stage is Stage.SEARCH]

    def search_trials(self) -> int:
        """How many trials of searches the store holds."""
        with self.store.reading() as connection:
            (count,) = connection.execute(
                "SELECT count(*) FROM trials WHERE stage = ?", (Stage.SEARCH.value,)
            ).fetchone()
        return int(count)

    def tune(self, tasks: Sequence[Task], **changes: Any) -> list[TuningResult]:
        return list(tune(tasks, self.session(**changes), self.tell).values())


@pytest.fixture
def make_bench(tmp_path: Path, make_tiled: Callable[..., Any]) -> Iterator[Callable[..., Bench]]:
    opened: list[TuningStore] = []

    def make(*names: str) -> Bench:
        opened.append(TuningStore(tmp_path / f"{len(opened)}.sqlite"))
        sizes = (32, 64, 128)
        return Bench(opened[-1], {name: make_tiled(sizes, name) for name in names or ("tiled",)})

    yield make
    for store in opened:
        store.close()
