"""Faults planted in recurrences: checking mode or the comparison with float64 sees each of them."""

from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, drop, plant
from support.problems.recurrences import drawn, recurrence

from wpk.emulator import EmulatorError
from wpk.problems import Cell, Recurrence
from wpk.schedules.recurrence_mma import (
    CLUSTER,
    GRID,
    WORDS,
    RecurrenceMmaSchedule,
    RecurrenceMmaTemplate,
)
from wpk.schedules.recurrence_simt import RecurrenceSimtSchedule, RecurrenceSimtTemplate

_ALLOWED = 5e-3

_SUMS = Fault("parts of sums are added before all are there", drop("sums_written"))
_FIRST = Fault("the first states are read before they are there", drop("first_states_written"))
_CASES: list[tuple[Fault, int]] = [
    (_SUMS, CLUSTER),
    (_SUMS, GRID),
    (_FIRST, GRID),
    (Fault("states are handed on before all are there", drop("hand_written")), CLUSTER),
    (Fault("nobody waits for a cluster's states", drop("states_arrived")), CLUSTER),
    (Fault("an arrival in front of the block's states", drop("states_written")), GRID),
    (Fault("nobody waits for the states of others", drop("arrivals_awaited")), GRID),
    (Fault("states are multiplied before they are copied", drop("states_copied")), GRID),
    (Fault("pairs of states are taken as they are", drop("words_awaited")), WORDS),
    (Fault("states are multiplied before all are there", drop("words_written")), WORDS),
    (_SUMS, WORDS),
]


def _worst(execution: Any, template: Any, problem: Recurrence, schedule: Any) -> float:
    case = drawn(problem)
    tensors = [each.tensor for each in problem.accesses()[0] if each is not None]
    memory = [execution.memory(*pair) for pair in zip(tensors, case.operands, strict=True)]
    y = execution.run(template, problem, schedule, memory, case.output.shape)
    return float(np.abs(np.nan_to_num(y, nan=9.0) - case.output).max())


def _is_seen(execution: Any, template: Any, problem: Recurrence, schedule: Any) -> bool:
    try:
        return _worst(execution, template, problem, schedule) > _ALLOWED
    except (EmulatorError, AssertionError):
        return True


@pytest.mark.parametrize(("fault", "exchange"), _CASES, ids=[f"{f.name}-{e}" for f, e in _CASES])
def test_a_planted_fault_is_seen(fault: Fault, exchange: int, checking_execution: Any) -> None:
    template = plant(RecurrenceMmaTemplate(), fault)
    problem = recurrence(Cell.LSTM, hidden=64, batch=11, steps=5, given=("bias", "h0"))
    schedule = RecurrenceMmaSchedule(16, 16, 2, exchange, 1)
    assert _worst(checking_execution, RecurrenceMmaTemplate(), problem, schedule) <= _ALLOWED
    assert _is_seen(checking_execution, template, problem, schedule)


@pytest.mark.parametrize(
    ("point", "exchange"),
    [("words_cleared", WORDS), ("sequences_done", WORDS), ("sequences_done", GRID)],
)
def test_a_missing_barrier_between_teams_of_sequences_is_seen(
    point: str, exchange: int, checking_execution: Any
) -> None:
    problem = recurrence(Cell.LSTM, hidden=64, batch=21, steps=3, given=("bias", "h0"))
    schedule = RecurrenceMmaSchedule(16, 8, 2, exchange, 1)
    template = plant(RecurrenceMmaTemplate(), Fault("a barrier is missing", drop(point)))
    assert _worst(checking_execution, RecurrenceMmaTemplate(), problem, schedule) <= _ALLOWED
    assert _is_seen(checking_execution, template, problem, schedule)


@pytest.mark.parametrize(
    ("name", "resets"), [("states_written", 1), ("states_written", 0), ("reset_states_written", 0)]
)
def test_a_missing_barrier_on_ordinary_cores_is_seen(
    name: str, resets: int, checking_execution: Any
) -> None:
    problem = recurrence(Cell.GRU, hidden=24, linear_before_reset=bool(resets))
    template = plant(RecurrenceSimtTemplate(), Fault("", drop(name)))
    assert _is_seen(checking_execution, template, problem, RecurrenceSimtSchedule(4, 2))
