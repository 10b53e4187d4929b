"""The tuning loop asks ahead: what compiles meanwhile, and what it never changes."""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

import pytest
from support.plans.spaces import whole_space

from wpk.candidate import Candidate
from wpk.problems import Matmul
from wpk.search.loop.budget import Budget
from wpk.search.loop.result import Stop
from wpk.search.loop.task import Contender, Task
from wpk.search.loop.tune import FIRST_TRIALS
from wpk.search.loop.tune_problem import WINDOW
from wpk.search.searchers.registry import SEARCHERS
from wpk.search.store.records import Stage
from wpk.targets.registry import find_target
from wpk.trial import Status, Trial
from wpk.trial_bench.request import Request

MakeProduct = Callable[[int, int, int], Matmul]
MakeBench = Callable[..., Any]


def test_while_one_is_measured_the_next_ones_compile(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    waiting: list[int] = []
    bench.runner.spoil = lambda r: waiting.append(len(bench.searched()))
    bench.tune([bench.task(make_product(512, 512, 512))])
    # The last ones of 24 have ever fewer behind them; the finals have none.
    assert waiting[:24] == [WINDOW - 1] * (24 - WINDOW + 1) + list(range(WINDOW - 2, -1, -1))
    assert bench.runner.expected == bench.runner.requests[:24]


def test_a_problem_begins_to_compile_while_the_one_before_is_tuned(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    first, second = (bench.task(make_product(m, 512, 512), 1, e) for m, e in ((512, 2), (256, 1)))
    at_first: list[Request] = []

    def look(request: Request) -> None:
        at_first.extend([] if at_first else bench.searched())

    bench.runner.spoil = look
    bench.tune([first, second])
    coming = [each for each in at_first if each.problem == second.problem]
    assert len(coming) == WINDOW
    assert [r for r in bench.runner.requests if r.problem == second.problem][:WINDOW] == coming


def test_what_was_expected_of_a_problem_that_stops_is_dropped_and_counts_for_nothing(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    bench.runner.spoil = lambda r: Trial(r.candidate, Status.OK, (1.0,))
    effort = replace(bench.effort, patience=5)
    (tuned,) = bench.tune([bench.task(make_product(512, 512, 512))], effort=effort)
    assert tuned.stop is Stop.NO_IMPROVEMENT
    assert len(tuned.tried) == bench.search_trials() == 6
    assert len(bench.runner.expected) == 5 + WINDOW
    assert bench.runner.waiting == []


def test_no_more_is_expected_than_a_budget_of_trials_allows(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    bench.tune([bench.task(make_product(512, 512, 512))], budget=Budget(trials=5))
    assert len(bench.runner.expected) == 5


def test_nothing_is_expected_once_the_time_is_over(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    tasks = [bench.task(make_product(m, 512, 512)) for m in (512, 256, 128)]
    bench.tune(tasks, budget=Budget(seconds=8.0))
    searched = Counter(each.problem for each in bench.runner.expected)
    assert set(searched.values()) == {
        FIRST_TRIALS
    }  # a little of each was, and then the time was over
    assert bench.runner.waiting == []


def test_what_would_be_compared_is_made_ready_and_dropped_where_it_is_overtaken(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    ready: dict[int, set[Candidate]] = {}  # before each final
    costs = iter([9.0, 8.0, 7.0, 6.0, 5.0])

    def spoil(request: Request) -> Trial | None:
        if request.stage is Stage.FINAL:
            ready[len(ready)] = {r.candidate for r in bench.runner.finals}
            return None
        return Trial(request.candidate, Status.OK, (next(costs),))

    bench.runner.spoil = spoil
    task = bench.task(make_product(512, 512, 512))
    (tuned,) = bench.tune([task], budget=Budget(trials=5))
    tried = [each.candidate for each in tuned.tried]
    assert [r.candidate for r in bench.runner.finals] == tried
    assert ready[0] == set(tried)  # each was among the best three when it had been tried
    assert bench.runner.waiting == []


def test_what_was_compared_before_is_not_made_ready(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    task = bench.task(make_product(512, 512, 512))
    bench.tune([task])
    assert bench.runner.finals
    bench.runner.finals.clear()
    bench.tune([task])
    assert bench.runner.finals == []


class _Sleeping:
    """Compiles on so many threads and measures, both by sleeping."""

    def __init__(
        self, runner: Any, cores: int, compiling: Iterator[float], measuring: float
    ) -> None:
        self.runner, self.compiling, self.measuring = runner, compiling, measuring
        self.threads = ThreadPoolExecutor(cores)
        self.built: dict[Request, Future[None]] = {}

    def expect(self, requests: Sequence[Request]) -> None:
        for each in requests:
            self.built[each] = self.threads.submit(time.sleep, next(self.compiling))

    def drop(self, requests: Sequence[Request]) -> None:
        for each in requests:
            self.built[each].cancel()

    def measure(self, requests: Sequence[Request]) -> Iterator[Trial]:
        for each in requests:
            if each in self.built:
                self.built[each].result()
            time.sleep(self.measuring)
        yield from self.runner.measure(requests)


class _Clocked:
    """Compiles on so many cores and measures, both on a clock of its own."""

    def __init__(self, runner: Any, cores: int, compiling: float, measuring: float) -> None:
        self.runner, self.compiling, self.measuring = runner, compiling, measuring
        self.now = 0.0
        self.free = [0.0] * cores
        self.built: dict[Request, float] = {}

    def expect(self, requests: Sequence[Request]) -> None:
        for each in (r for r in requests if r.stage is Stage.SEARCH):
            end = max(self.now, heappop(self.free)) + self.compiling
            heappush(self.free, end)
            self.built[each] = end

    def drop(self, requests: Sequence[Request]) -> None:
        searched = [each for each in requests if each.stage is Stage.SEARCH]
        assert not searched, "every schedule that was expected is measured here"

    def measure(self, requests: Sequence[Request]) -> Iterator[Trial]:
        for each in requests:
            self.now = max(self.now, self.built.get(each, 0.0)) + self.measuring
        yield from self.runner.measure(requests)


def test_compiling_and_measuring_overlap(make_bench: MakeBench, make_product: MakeProduct) -> None:
    compiling, measuring, cores, trials = 0.12, 0.03, 4, 48
    bench = make_bench()
    bench.effort = replace(bench.effort, rounds=1)
    tasks = [bench.task(make_product(m, 512, 512)) for m in (512, 256)]
    clocked = _Clocked(bench.runner, cores, compiling, measuring)
    bench.tune(tasks, bench=clocked)
    at_best = trials * max(compiling / cores, measuring)
    one_after_the_other = trials * (compiling / cores + measuring)
    finals = 2 * 4 * measuring
    assert at_best < clocked.now < 0.75 * one_after_the_other + finals


@pytest.mark.parametrize("name", SEARCHERS)
def test_how_long_compiles_take_changes_nothing(
    make_bench: MakeBench, make_product: MakeProduct, name: str
) -> None:
    def tried(compiling: Iterator[float]) -> list[Request]:
        bench = make_bench("one", "two")
        tasks = [_searched(bench.task(make_product(m, 512, 512)), bench, name) for m in (512, 256)]
        slow = _Sleeping(bench.runner, 3, compiling, 0.0)
        bench.tune(tasks, bench=slow)
        slow.threads.shutdown()
        asked = [(r.problem, r.candidate) for r in bench.runner.expected]
        assert len(set(asked)) == len(asked)
        measured: list[Request] = bench.runner.requests
        return measured

    assert tried(itertools.repeat(0.0)) == tried(itertools.cycle([0.0, 0.02, 0.001, 0.005]))


def _searched(task: Task, bench: Any, name: str) -> Task:
    """The task, its spaces searched by a searcher of this name."""

    def begin(contender: Contender) -> Contender:
        template = bench.templates[contender.template.name]
        space = whole_space(task.problem, template, find_target("h200"))
        return replace(contender, searcher=lambda seed: SEARCHERS[name](space, seed))

    return replace(task, contenders=tuple(map(begin, task.contenders)))
