"""The tuning loop: order, budgets, when to stop, and the time that is left."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.plans.spaces import whole_space

from wpk.problems import Matmul
from wpk.search.loop.budget import Budget, Slice
from wpk.search.loop.result import Stop
from wpk.search.loop.tune import FIRST_SHARE, in_order, shares
from wpk.search.loop.tune_problem import FEWEST, ProblemTuning
from wpk.search.store.records import Stage
from wpk.targets.registry import find_target
from wpk.trial import Status, Trial
from wpk.trial_bench.request import Request

MakeProduct = Callable[[int, int, int], Matmul]
MakeBench = Callable[..., Any]


def test_stops_near_the_bound_and_the_floor_of_a_launch(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    task = bench.task(make_product(512, 512, 512))
    best = min(each.cost for each in bench.tune([task])[0].tried)
    for floor, stop in ((best / 1.049, Stop.AT_BOUND), (best / 1.051, Stop.TRIALS_SPENT)):
        fresh = make_bench()
        (tuned,) = fresh.tune([replace(task, bound=0.0, floor=floor)])
        assert tuned.stop is stop
        assert tuned.best is not None


def test_stops_when_nothing_improves(make_bench: MakeBench, make_product: MakeProduct) -> None:
    bench = make_bench()
    times = iter([5.0, 4.0, *[3.99] * 100])  # the third is better by less than counts
    bench.runner.spoil = lambda r: Trial(r.candidate, Status.OK, (next(times),))
    task = bench.task(make_product(512, 512, 512))
    (tuned,) = bench.tune([task], effort=replace(bench.effort, patience=14))
    assert tuned.stop is Stop.NO_IMPROVEMENT
    assert len(tuned.tried) == 16  # 14 after the second


def test_small_improvements_add_up(make_bench: MakeBench, make_product: MakeProduct) -> None:
    bench = make_bench()
    times = (5.0 * 0.996**number for number in range(1000))
    bench.runner.spoil = lambda r: Trial(r.candidate, Status.OK, (next(times),))
    task = bench.task(make_product(512, 512, 512))
    (tuned,) = bench.tune([task], effort=replace(bench.effort, patience=4))
    assert tuned.stop is Stop.TRIALS_SPENT


def test_a_space_smaller_than_the_effort_is_exhausted(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    problem = make_product(512, 512, 512)
    size = whole_space(problem, bench.templates["tiled"], find_target("h200")).size
    (tuned,) = bench.tune([bench.task(problem)], effort=replace(bench.effort, trials=1000))
    assert tuned.stop is Stop.EXHAUSTED
    assert len({each.candidate.configuration for each in tuned.tried}) == len(tuned.tried) == size


def test_problems_come_by_what_is_to_be_won(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    task = bench.task(make_product(512, 512, 512))
    slow_at_bound = replace(task, estimate=9e-3, bound=8.9e-3)
    fast_far_off = replace(task, estimate=1e-3, bound=1e-4)
    often = replace(fast_far_off, count=7)
    under = replace(task, estimate=1e-3, bound=2e-3)
    measured = replace(under, measured=9e-3)  # the models were wrong about it
    assert in_order([often, under, measured]) == [measured, often, under]
    assert in_order([under, slow_at_bound, fast_far_off, often]) == [
        often,
        fast_far_off,
        slow_at_bound,
        under,
    ]


def test_shares_follow_the_gain_and_use_up_the_budget(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    task = replace(make_bench().task(make_product(64, 64, 64)), bound=0.0)
    left, spent = 100.0, []
    for share in shares([replace(task, estimate=e) for e in (6.0, 3.0, 0.0)]):
        spent.append(left * share)
        left -= spent[-1]
    # 5 % of the mean gain, 0.15, goes on top of 6, 3 and 0.
    assert spent == pytest.approx([100 * w / 9.45 for w in (6.15, 3.15, 0.15)])
    assert left == pytest.approx(0.0, abs=1e-9)
    assert shares([replace(task, estimate=0.0)] * 2) == [0.5, 1.0]
    assert shares([]) == []


def test_a_budget_of_trials_is_kept(make_bench: MakeBench, make_product: MakeProduct) -> None:
    bench = make_bench()
    products = [make_product(m, 512, 512) for m in (512, 256, 128)]
    tasks = [replace(bench.task(product), bound=0.0) for product in products]
    found = bench.tune(tasks, budget=Budget(trials=30))
    assert bench.search_trials() == 30
    assert [len(each.tried) for each in found] == [10, 10, 10]
    assert {each.stop for each in found} == {Stop.OUT_OF_BUDGET}
    assert all(each.compared for each in found)


def test_a_budget_of_time_is_kept_but_for_a_trial_and_the_finals(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    effort = replace(bench.effort, trials=10_000)
    tasks = [bench.task(make_product(m, 512, 512)) for m in (512, 256)]
    found = bench.tune(tasks, effort=effort, budget=Budget(seconds=50.0))
    assert {each.stop for each in found} == {Stop.OUT_OF_BUDGET}
    assert all(each.tried and each.compared for each in found)
    assert bench.clock.now - 100.0 <= 50.0 + 1 + 7


def test_when_the_time_is_over_what_is_known_is_used(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    first, second = (bench.task(make_product(m, 512, 512)) for m in (512, 256))
    bench.runner.break_after = 20
    with pytest.raises(KeyboardInterrupt):
        bench.tune([second])
    bench.runner.break_after = float("inf")
    slow = replace(first, estimate=2e-3)
    tuned = {e.problem: e for e in bench.tune([slow, second], budget=Budget(seconds=FEWEST))}
    assert tuned[slow.problem].compared
    known = tuned[second.problem]
    assert not known.compared
    assert len(known.tried) == 20
    assert known.best is not None
    assert known.best.cost == min(each.cost for each in known.tried)


def test_a_problem_of_which_nothing_runs_ends_behind_its_time(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    bench.runner.spoil = lambda r: Trial(r.candidate, Status.WRONG_RESULT)
    now = bench.clock.now
    tuning = ProblemTuning(bench.task(make_product(512, 512, 512)), bench.session())
    stop = tuning.search(Slice(now + 3.0, now + 3.0, now + 100.0), lambda: None)
    bench.clock.now = now + 10.0
    found = tuning.finish(stop)
    assert found.best is None
    assert not found.finalists


def test_every_problem_is_tried_a_little_before_most_goes_where_most_is_to_be_won(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    often, *others = (bench.task(make_product(m, 512, 512)) for m in (1024, 512, 256, 128))
    tasks = [replace(often, count=50), *others]
    found = {e.problem: len(e.tried) for e in bench.tune(tasks, budget=Budget(seconds=64.0))}
    assert min(found.values()) >= 64 * FIRST_SHARE / len(tasks)
    assert max(found.values()) == found[often.problem] > 2 * min(found.values())
    first = [request.problem for request in bench.runner.requests]
    turns = [first.index(task.problem) for task in tasks]
    assert turns[0] == 0
    assert sorted(turns) == [0, 4, 8, 12]
    assert bench.clock.now - 100.0 <= 64.0 + 1


def test_comparing_takes_what_is_left_of_a_problems_time_and_the_best_few_once_at_least(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    rounds = {}
    for seconds in (6.0, 12.0, 1000.0):
        bench = make_bench()
        bench.effort = replace(bench.effort, rounds=3)
        (tuned,) = bench.tune([bench.task(make_product(512, 512, 512))], budget=Budget(seconds))
        finals = [each for each in bench.runner.requests if each.stage is Stage.FINAL]
        assert tuned.compared
        best = tuned.best
        assert best is not None
        rounds[seconds] = len(tuned.finalists), len(best.seconds) // 2
        assert len(finals) >= rounds[seconds][0] * rounds[seconds][1]
    assert rounds == {6.0: (FEWEST, 1), 12.0: (3, 1), 1000.0: (3, 3)}


@pytest.mark.parametrize("budget", [Budget(seconds=5.0), Budget(trials=5)], ids=["time", "trials"])
def test_a_problem_of_which_all_failed_is_searched_until_something_runs(
    make_bench: MakeBench, make_product: MakeProduct, budget: Budget
) -> None:
    """The budget is the first problem's; what the models chose for the second is wrong."""
    bench = make_bench()
    first, second = (bench.task(make_product(m, 512, 512)) for m in (512, 256))
    wrong: list[Request] = []

    def spoil(request: Request) -> Trial | None:
        if request.problem != second.problem or len(wrong) == 12:
            return None
        wrong.append(request)
        return Trial(request.candidate, Status.WRONG_RESULT)

    bench.runner.spoil = spoil
    bench.runner.break_after = 1
    with pytest.raises(KeyboardInterrupt):
        bench.tune([second])
    bench.runner.break_after = float("inf")
    found = bench.tune([replace(first, estimate=2e-1), second], budget=budget)
    assert len(wrong) == 12
    assert found[1].best is not None
    assert found[1].stop is Stop.OUT_OF_BUDGET


def test_progress_tells_place_and_time_left(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    tasks = [bench.task(make_product(m, 512, 512)) for m in (512, 256)]
    bench.tune(tasks)
    assert [told[:2] for told in bench.told] == [
        *[(0, 2)] * 25,
        (1, 2),
        *[(1, 2)] * 25,
        (2, 2),
    ]
    etas = [left for _, _, left in bench.told]
    # A trial takes a second, and 6 of the finals and one in the other regime come between the
    # problems: 31 s for 24 trials.
    assert etas[:3] == [None, 23 + 24, 22 + 24]
    assert etas[26] == pytest.approx(24 * 31 / 24)
    assert etas[-1] == 0.0


def test_time_left_is_at_most_the_budget(make_bench: MakeBench, make_product: MakeProduct) -> None:
    bench = make_bench()
    effort = replace(bench.effort, trials=54)
    tasks = [bench.task(make_product(m, 512, 512)) for m in (512, 256)]
    bench.tune(tasks, effort=effort, budget=Budget(seconds=60.0))
    assert bench.told[0][2] == 60.0 - 1
