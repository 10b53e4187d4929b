"""The tuning loop: what it measures, keeps, resumes and chooses."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.plans.candidates import kernel

from wpk.problems import Matmul
from wpk.search.loop.result import Stop
from wpk.search.loop.tune import tune
from wpk.search.store.key import StoreKey
from wpk.search.store.lookup import look_up
from wpk.search.store.records import Stage
from wpk.search.store.summary import summarize
from wpk.trial import Regime, Status, Trial
from wpk.trial_bench.request import Request

MakeProduct = Callable[[int, int, int], Matmul]
MakeBench = Callable[..., Any]


def test_the_best_of_all_that_was_tried_wins(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    (tuned,) = bench.tune([bench.task(make_product(512, 512, 512))])
    assert tuned.stop is Stop.TRIALS_SPENT
    assert len(tuned.tried) == 24
    assert tuned.best is not None
    assert tuned.best.cost == min(each.cost for each in tuned.tried)
    assert tuned.compared
    assert len(tuned.finalists) == 3
    assert len(tuned.best.seconds) == 2 * 2  # rounds of two repetitions
    assert bench.runner.calls == [*[1] * 24, 3, 3, 1]  # the last one in the other regime
    assert tuned.lookups[0].startswith("miss: no trial of problem")


def test_finalists_take_turns_at_going_first(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    bench.tune([bench.task(make_product(512, 512, 512))])
    a, b, c = (request.candidate.configuration for request in bench.runner.requests[24:27])
    assert [request.candidate.configuration for request in bench.runner.requests[27:30]] == [
        b,
        c,
        a,
    ]


def test_every_trial_is_stored_before_the_next_is_measured(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    counts: list[int] = []

    def count(request: Request) -> None:
        counts.append(bench.search_trials())

    bench.runner.spoil = count
    bench.tune([bench.task(make_product(512, 512, 512))])
    assert counts[:24] == list(range(24))


def test_a_second_run_measures_nothing_and_chooses_the_same(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench("one", "two")
    tasks = [bench.task(make_product(512, 512, 512)), bench.task(make_product(256, 64, 64))]
    first = bench.tune(tasks)
    measured, searchers = len(bench.runner.requests), bench.searchers
    second = bench.tune(tasks, seed=2)
    assert len(bench.runner.requests) == measured
    assert bench.searchers == searchers  # spaces are not even listed
    assert [each.best for each in second] == [each.best for each in first]
    assert [each.tried for each in second] == [each.tried for each in first]
    assert second[0].known == 24
    assert {each.proposer for each in second[0].tried} == {"random"}
    assert all(why.startswith("hit: ") for each in second for why in each.lookups)


def test_more_effort_continues_where_less_has_ended(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    task = bench.task(make_product(512, 512, 512))
    bench.tune([task])
    (tuned,) = bench.tune([task], effort=replace(bench.effort, trials=30))
    assert (tuned.known, len(tuned.tried)) == (24, 30)
    assert len({each.candidate.configuration for each in tuned.tried}) == 30


@pytest.mark.parametrize("moment", [0, 1, 15, 16, 23, 24, 25, 28, 29, 40, 50])
def test_an_interrupted_run_is_resumed_without_losing_a_trial(
    make_bench: MakeBench, make_product: MakeProduct, moment: int
) -> None:
    bench, whole = make_bench(), make_bench()
    tasks = [bench.task(make_product(512, 512, 512)), bench.task(make_product(256, 512, 64))]
    bench.runner.break_after = moment
    session = bench.session(seed=4)
    with pytest.raises(KeyboardInterrupt):
        tune(tasks, session, bench.tell)
    assert summarize(bench.store).trials == moment

    bench.runner.break_after = float("inf")
    resumed = bench.tune(tasks, run=session.run.id)
    assert [len(each.tried) for each in resumed] == [24, 24]
    searched = [(r.problem, r.candidate.configuration) for r in bench.runner.requests]
    assert len(set(searched)) == bench.search_trials() == 48
    # The random searcher asks in one order whatever it was told, so the result is the same, too.
    uninterrupted = whole.tune(tasks, seed=4)
    assert {each.candidate.configuration for each in resumed[0].tried} == {
        each.candidate.configuration for each in uninterrupted[0].tried
    }
    assert [each.best and each.best.candidate.configuration for each in resumed] == [
        each.best and each.best.candidate.configuration for each in uninterrupted
    ]


def test_an_error_of_the_runner_loses_no_trial(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    bench.runner.break_after, bench.runner.error = 5, RuntimeError
    with pytest.raises(RuntimeError):
        bench.tune([bench.task(make_product(512, 512, 512))])
    assert bench.search_trials() == 5


def test_a_problem_nothing_of_which_runs_has_no_best(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    bench.runner.spoil = lambda r: Trial(r.candidate, Status.WRONG_RESULT, (), "all zeros")
    task = bench.task(make_product(512, 512, 512))
    (tuned,) = bench.tune([task], effort=replace(bench.effort, patience=2))
    assert tuned.best is None
    assert not tuned.compared
    assert tuned.stop is Stop.TRIALS_SPENT  # no patience before the first that runs
    assert bench.runner.calls == [1] * 24


def test_a_finalist_that_fails_makes_room_for_the_next(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()

    def spoil(request: Request) -> Trial | None:
        number = len(bench.runner.requests)
        return Trial(request.candidate, Status.WRONG_RESULT) if number == 28 else None

    bench.runner.spoil = spoil
    task = bench.task(make_product(512, 512, 512))
    (tuned,) = bench.tune([task])
    bad = bench.runner.requests[27].candidate.configuration
    assert bench.runner.calls == [*[1] * 24, 3, 3, 3, 3, 1]
    assert len(tuned.finalists) == 3
    assert bad not in [each.candidate.configuration for each in tuned.finalists]
    known = look_up(
        bench.store,
        StoreKey(task.problem, kernel("tiled", version="1").maker, bench.setup),
        Regime.COLD,
    ).histories
    assert {k.trial.status for k in known if k.trial.candidate.configuration == bad} == {
        Status.WRONG_RESULT
    }


def test_the_finals_decide_not_a_lucky_search(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    lucky: list[Request] = []

    def spoil(request: Request) -> Trial | None:
        if not lucky:
            lucky.append(request)
            return Trial(request.candidate, Status.OK, (1e-9,))
        return Trial(request.candidate, Status.OK, (1.0,)) if request == lucky[0] else None

    bench.runner.spoil = spoil
    task = replace(bench.task(make_product(512, 512, 512)), bound=0.0)
    (tuned,) = bench.tune([task])
    assert tuned.best is not None
    assert tuned.best.candidate != lucky[0].candidate


def test_known_trials_outside_the_space_still_compete(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    task = replace(bench.task(make_product(512, 512, 512)), bound=0.0)
    outside = (("block_m", 7), ("block_n", 7), ("block_k", 7), ("padded", 7))
    key = StoreKey(task.problem, kernel("tiled", version="1").maker, bench.setup)
    fast = Trial(kernel("tiled", outside), Status.OK, (1e-9,))
    bench.store.record(bench.store.begin_run(0).id, key, fast, Regime.COLD)
    bench.runner.spoil = lambda r: fast if r.candidate.configuration == outside else None
    (tuned,) = bench.tune([task])
    assert tuned.best is not None
    assert tuned.best.candidate.configuration == outside


def test_templates_share_the_trials_of_a_problem(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench("one", "two")
    (tuned,) = bench.tune([bench.task(make_product(512, 512, 512))])
    names = [each.candidate.maker.name for each in tuned.tried]
    assert names.count("one") == names.count("two") == 12


def test_the_seed_decides_and_not_the_order_of_tuning(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    problems = [make_product(512, 512, 512), make_product(256, 512, 64)]

    def tried(estimates: tuple[float, float], seed: int) -> dict[Matmul, Any]:
        bench = make_bench()
        tasks = [bench.task(p, 1, e) for p, e in zip(problems, estimates, strict=True)]
        return {each.problem: each.tried for each in bench.tune(tasks, seed=seed)}

    assert tried((1.0, 2.0), 5) == tried((2.0, 1.0), 5)
    assert tried((1.0, 2.0), 5) != tried((1.0, 2.0), 6)


def test_one_problem_twice_is_refused(make_bench: MakeBench, make_product: MakeProduct) -> None:
    bench = make_bench()
    task = bench.task(make_product(512, 512, 512))
    with pytest.raises(ValueError, match="two tasks are of one problem"):
        bench.tune([task, task])


def test_a_runner_that_answers_for_another_schedule_is_a_bug(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    bench.runner.spoil = lambda r: Trial((("block_m", 1),), Status.OK, (1.0,))
    with pytest.raises(ValueError, match="asked to measure"):
        bench.tune([bench.task(make_product(512, 512, 512))])
    assert bench.search_trials() == 0


def test_the_best_is_measured_once_in_the_other_regime_too(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    task = bench.task(make_product(512, 512, 512))
    (tuned,) = bench.tune([task])
    last = bench.runner.requests[-1]
    assert tuned.best is not None
    assert (last.regime, last.stage) == (Regime.WARM, Stage.FINAL)
    assert last.candidate.configuration == tuned.best.candidate.configuration
    assert [each.candidate.configuration for each in tuned.elsewhere] == [
        last.candidate.configuration
    ]
    asked = len(bench.runner.requests)
    (again,) = bench.tune([task])
    assert len(bench.runner.requests) == asked
    assert again.elsewhere == tuned.elsewhere


def test_what_may_be_chosen_is_asked_for_as_such(
    make_bench: MakeBench, make_product: MakeProduct
) -> None:
    bench = make_bench()
    bench.tune([bench.task(make_product(512, 512, 512))])
    stages = [request.stage for request in bench.runner.requests]
    assert stages == [Stage.SEARCH] * 24 + [Stage.FINAL] * 7
