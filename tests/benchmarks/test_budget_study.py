"""How the study of budgets shares, and what its clock counts."""

from types import SimpleNamespace
from typing import Any

import pytest
from budget_study import TRIAL_SECONDS, ReplayedBench, by_turn

from wpk.search.loop.task import Task
from wpk.search.loop.tune import shares


def _task(count: int, measured: float) -> Task:
    problem: Any = None
    return Task(problem, count, 1.0, bound=0.25, floor=0.5, contenders=(), measured=measured)


def test_by_turn_all_have_the_same_part_however_much_is_to_be_won() -> None:
    tasks = [_task(1, 1.0), _task(9, 5.0)]
    assert [by_turn(task).gain for task in tasks] == [1.0, 1.0]
    assert shares([by_turn(task) for task in tasks]) == pytest.approx([0.5, 1.0])
    assert shares(tasks[::-1])[0] > 0.9


def test_a_measurement_is_looked_up_and_takes_its_time() -> None:
    space: Any = SimpleNamespace(problem="p", by_candidate={"a": "one", "b": "two"})
    bench, requests = (
        ReplayedBench([space]),
        [SimpleNamespace(problem="p", candidate=c) for c in "ba"],
    )
    assert list(bench.measure(requests)) == ["two", "one"]  # type: ignore[arg-type]
    assert bench() == pytest.approx(2 * TRIAL_SECONDS)
