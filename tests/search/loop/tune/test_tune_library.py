"""A library beside the templates: it has a share of the time, and is never counted as a schedule."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from support.plans.candidates import library_call

from wpk.candidate import GENERATED
from wpk.problems import Matmul
from wpk.search.loop.budget import Budget, Slice
from wpk.search.loop.library_turn import LibraryTurn
from wpk.search.loop.result import Stop
from wpk.search.loop.task import Rival, Task
from wpk.search.loop.tune_problem import FEWEST
from wpk.search.store.records import Stage
from wpk.trial import Status, Trial
from wpk.trial_bench.request import Request

MakeProduct = Callable[[int, int, int], Matmul]
MakeBench = Callable[..., Any]

ENGINES = tuple((("graph", 0), ("engine", number)) for number in range(4))
SECONDS = {ENGINES[0]: 2e-3, ENGINES[1]: 1e-3, ENGINES[2]: 1e-9, ENGINES[3]: 1e-9}
CALLS = tuple(library_call(each, version="9.19.0") for each in ENGINES)
NEWER_CALLS = tuple(library_call(each, version="9.20.0") for each in ENGINES)
NEWER = Rival(NEWER_CALLS[0].maker, NEWER_CALLS, ())
ABSENT = Rival(library_call(version="").maker, (), ("cuDNN is not installed",))
RIVAL = Rival(CALLS[0].maker, CALLS, ("no engine reads channels first",))


def _answer(request: Request) -> Trial | None:
    if request.candidate.maker.name != "cuDNN":
        return None
    return Trial(request.candidate, Status.OK, (SECONDS[request.candidate.configuration],) * 2)


@pytest.fixture
def bench(make_bench: MakeBench) -> Any:
    bench = make_bench()
    bench.runner.spoil = _answer
    return bench


@pytest.fixture
def task(bench: Any, make_product: MakeProduct) -> Task:
    task: Task = replace(bench.task(make_product(512, 512, 512)), rivals=(RIVAL,))
    return task


def test_its_best_guesses_are_tried_first_and_are_no_schedules(bench: Any, task: Task) -> None:
    (tuned,) = bench.tune([task])
    first = [request.candidate.configuration for request in bench.runner.requests[:2]]
    assert first == list(ENGINES[: bench.effort.library])
    assert [each.candidate.configuration for each in tuned.library] == first
    assert {each.candidate.maker.name for each in tuned.tried} == {"tiled"}
    assert len(tuned.tried) == bench.effort.trials
    assert tuned.refusals == RIVAL.refusals


def test_its_best_is_compared_with_the_best_schedules(bench: Any, task: Task) -> None:
    (tuned,) = bench.tune([task])
    generated, library = tuned.best_of(GENERATED), tuned.best_of("cuDNN")
    assert generated is not None
    assert library is not None
    assert library.candidate.configuration == ENGINES[1]
    assert len(tuned.finalists) == bench.effort.finalists + 2
    assert tuned.best == min(generated, library, key=lambda each: each.cost)
    assert len(library.seconds) == 2 * bench.effort.rounds


def test_a_problem_that_the_budget_does_not_reach_is_compared_with_its_best_guess(
    bench: Any, task: Task, make_product: MakeProduct
) -> None:
    """The guess that the library never makes ready is none."""

    def answer(request: Request) -> Trial | None:
        if request.candidate.configuration == ENGINES[0]:
            return Trial(request.candidate, Status.REJECTED)
        return _answer(request)

    first = replace(bench.task(make_product(1024, 512, 512)), estimate=2e-1)
    schedule = _known_schedule(bench, task)
    bench.runner.spoil = answer
    requests = len(bench.runner.requests)
    _, late = bench.tune([first, task], budget=Budget(seconds=0.0))
    asked = [r for r in bench.runner.requests[requests:] if r.problem == task.problem]
    searched = [r.candidate.configuration for r in asked if r.stage is Stage.SEARCH]
    assert searched == [ENGINES[0], ENGINES[1]]
    assert late.compared
    assert {each.candidate.configuration for each in late.finalists} == {schedule, ENGINES[1]}


@pytest.mark.parametrize(("seconds", "tried"), [(10.0, 1), (1000.0, 4)])
def test_a_first_turn_tries_none_and_later_ones_as_many_as_their_share_of_the_time_allows(
    bench: Any, task: Task, make_product: MakeProduct, seconds: float, tried: int
) -> None:
    bench.effort = replace(bench.effort, library=4)
    other = replace(bench.task(make_product(1024, 512, 512)), rivals=(RIVAL,))
    found = bench.tune([task, other], budget=Budget(seconds=seconds))
    assert [len(each.library) for each in found] == [tried, tried]
    makers = [request.candidate.maker.name for request in bench.runner.requests]
    first = makers.index("cuDNN")
    assert makers[:first] == ["tiled"] * first
    assert first >= 2 * FEWEST


@pytest.mark.parametrize(("seconds", "due"), [(1.7, 1), (3.4, 2), (inf, 4)])
def test_tries_stay_within_a_quarter_of_the_time(seconds: float, due: int) -> None:
    """Of 0.4 s each, where a first one is tried in any case."""
    turn = LibraryTurn(100.0, Slice(until=100.0 + seconds))
    tries = 0
    while tries < 4 and turn.is_within_share:
        tries += 1
        turn.passed(turn.now + 0.4)
    assert tries == due


def _known_schedule(bench: Any, task: Task) -> tuple[tuple[str, int], ...]:
    """What a run without the library has measured of a problem, and was then interrupted."""
    bench.runner.break_after = 1
    with pytest.raises(KeyboardInterrupt):
        bench.tune([replace(task, rivals=())])
    bench.runner.break_after = float("inf")
    schedule: tuple[tuple[str, int], ...] = bench.runner.requests[-1].candidate.configuration
    return schedule


def test_it_wins_where_it_is_the_fastest(bench: Any, task: Task) -> None:
    bench.effort = replace(bench.effort, library=3)
    (tuned,) = bench.tune([task])
    assert tuned.best is not None
    assert (tuned.best.candidate.maker.name, tuned.best.candidate.configuration) == (
        "cuDNN",
        ENGINES[2],
    )
    assert tuned.stop is Stop.AT_BOUND
    assert tuned.tried == ()  # nothing is left to be won
    assert tuned.best_of(GENERATED) is None


def test_an_implementation_that_fails_is_no_finalist(bench: Any, task: Task) -> None:
    def refuse(request: Request) -> Trial | None:
        if request.candidate.configuration == ENGINES[1]:
            return Trial(request.candidate, Status.WRONG_RESULT, (), "3 elements are wrong")
        return _answer(request)

    bench.runner.spoil = refuse
    (tuned,) = bench.tune([task])
    library = tuned.best_of("cuDNN")
    assert library is not None
    assert library.candidate.configuration == ENGINES[0]
    assert [each.status for each in tuned.library] == [Status.OK, Status.WRONG_RESULT]


def test_a_second_run_tries_nothing_again(bench: Any, task: Task) -> None:
    (first,) = bench.tune([task])
    asked = len(bench.runner.requests)
    (second,) = bench.tune([task])
    assert len(bench.runner.requests) == asked
    assert second.library == first.library
    assert second.best == first.best


def test_another_version_of_it_is_tried_again(bench: Any, task: Task) -> None:
    bench.tune([task])
    asked = len(bench.runner.requests)
    newer = replace(task, rivals=(NEWER,))
    (tuned,) = bench.tune([newer])
    again = bench.runner.requests[asked:]
    assert [request.candidate.configuration for request in again[:2]] == list(ENGINES[:2])
    assert {each.candidate.maker.version for each in tuned.library} == {"9.20.0"}


def test_one_that_is_not_installed_says_so(bench: Any, task: Task) -> None:
    absent = replace(task, rivals=(ABSENT,))
    (tuned,) = bench.tune([absent])
    assert tuned.library == ()
    assert tuned.refusals == ("cuDNN is not installed",)
    assert tuned.best is not None


def test_those_that_are_never_made_ready_take_no_place(bench: Any, task: Task) -> None:
    def reject(request: Request) -> Trial | None:
        if request.candidate.configuration == ENGINES[0]:
            return Trial(request.candidate, Status.REJECTED, (), "not for this GPU")
        return _answer(request)

    bench.runner.spoil = reject
    (tuned,) = bench.tune([task])
    assert [each.candidate.configuration for each in tuned.library] == list(ENGINES[:3])
    asked = len(bench.runner.requests)
    bench.tune([task])
    assert len(bench.runner.requests) == asked


@pytest.mark.parametrize(("seconds", "fewest", "most"), [(0.0, 2, 2), (20.0, 2, 6), (inf, 40, 40)])
def test_a_library_that_makes_nothing_ready_keeps_to_its_share_of_the_time(
    bench: Any, task: Task, seconds: float, fewest: int, most: int
) -> None:
    """Each try takes a second of the clock, as a schedule's does."""
    calls = tuple(
        library_call((("graph", 0), ("engine", number)), version="9.19.0") for number in range(40)
    )

    def reject(request: Request) -> Trial | None:
        if request.candidate.maker.name != "cuDNN":
            return None
        return Trial(request.candidate, Status.REJECTED, (), "not for this GPU")

    bench.runner.spoil = reject
    rival = replace(task, rivals=(Rival(CALLS[0].maker, calls, ()),))
    (tuned,) = bench.tune([rival], budget=Budget(None if seconds == inf else seconds))
    assert fewest <= len(tuned.library) <= most
    assert tuned.finalists == () or tuned.best is not None
