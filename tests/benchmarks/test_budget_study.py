"""How the study of budgets shares, and what its clock counts."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from budget_study import TRIAL_SECONDS, ReplayedBench, by_turn
from spaces.recorded import RecordedSpace

from wpk.candidate import Candidate, Maker
from wpk.search.loop.task import Task
from wpk.search.loop.tune import shares
from wpk.trial import Status, Trial


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


def test_what_was_recorded_is_known_by_the_parameters_of_today() -> None:
    @dataclass(frozen=True)
    class Later:
        first: int
        since: int = 7

    template: Any = SimpleNamespace(schedule_type=Later, maker=Maker("t", "2"))
    old = [
        Trial(Candidate(Maker("t", "1"), (("first", n),)), Status.OK, (float(n),)) for n in (3, 4)
    ]
    none: Any = None
    table = np.asarray([[3], [4]])
    space = RecordedSpace("n", none, template, none, 2, table, tuple(old), none, none, none)
    configurations = [candidate.configuration for candidate in space.by_candidate]
    assert configurations == [(("first", n), ("since", 7)) for n in (3, 4)]
    assert {candidate.maker.version for candidate in space.by_candidate} == {"2"}
    assert [trial.cost for trial in space.by_candidate.values()] == [3.0, 4.0]
