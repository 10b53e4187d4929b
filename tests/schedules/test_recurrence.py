"""Recurrences' templates: numbers in float64 for all cells, ragged batches, lengths, both ways to meet."""

from typing import Any

import numpy as np
import pytest
from support.problems.recurrences import drawn, recurrence

from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.problems import Cell, Recurrence
from wpk.schedules.recurrence_mma import (
    CLUSTER,
    GRID,
    WORDS,
    RecurrenceMmaSchedule,
    RecurrenceMmaTemplate,
)
from wpk.schedules.recurrence_simt import RecurrenceSimtSchedule, RecurrenceSimtTemplate
from wpk.targets.registry import find_target

MMA, SIMT = RecurrenceMmaTemplate(), RecurrenceSimtTemplate()
H200 = find_target("h200")
ALL = ("bias", "lengths", "h0", "c0", "peepholes")
SOME = ("bias", "lengths", "h0")

ALLOWED = {Precision.FP32: 2e-5, Precision.FP16: 4e-3, Precision.BF16: 4e-2}
"""Times the RMS of states, which are of the order of 1: some ten roundings of what is handed on."""


def check(
    execution: Any, template: Any, problem: Recurrence, schedule: Any, batch: int | None = None
) -> None:
    """Executes on random data and holds the result against float64."""
    assert template.why_not(problem, H200) is None
    assert template.why_illegal(problem, schedule, H200) is None
    case = drawn(problem, batch=batch)
    tensors = [each.tensor for each in problem.accesses()[0] if each is not None]
    memory = [execution.memory(*pair) for pair in zip(tensors, case.operands, strict=True)]
    dims = {problem.batch.free: batch} if problem.batch.free and batch else {}
    y = execution.run(template, problem, schedule, memory, case.output.shape, dims)
    assert np.abs(y - case.output).max() <= ALLOWED[problem.precision]


FORMS: dict[str, Any] = {
    "lstm": {"cell": Cell.LSTM},
    "all of an lstm": {"cell": Cell.LSTM, "given": ALL, "slots": 3, "clip": 1.5},
    "lstm backwards": {"cell": Cell.LSTM, "given": SOME, "slots": 3, "reverse": True},
    "gru": {"cell": Cell.GRU, "given": SOME, "slots": 2, "linear_before_reset": True},
    "gru backwards": {"cell": Cell.GRU, "linear_before_reset": True, "reverse": True},
    "rnn": {"cell": Cell.RNN, "given": SOME, "slots": 2},
    "relu": {"cell": Cell.RNN, "activations": ("Relu",), "clip": 1.0},
}
RESETTING: dict[str, Any] = {
    "gru that resets first": {"cell": Cell.GRU, "given": SOME, "slots": 2},
    "the same backwards": {"cell": Cell.GRU, "given": SOME, "reverse": True, "clip": 0.8},
}


@pytest.mark.parametrize("name", [*FORMS, *RESETTING])
def test_every_form_on_ordinary_cores(name: str, checking_execution: Any) -> None:
    problem = recurrence(hidden=13, precision=Precision.FP32, **{**FORMS, **RESETTING}[name])
    check(checking_execution, SIMT, problem, RecurrenceSimtSchedule(warps=3, rows=2))


@pytest.mark.parametrize("exchange", [CLUSTER, GRID, WORDS])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_on_tensor_cores(name: str, exchange: int, checking_execution: Any) -> None:
    problem = recurrence(hidden=32, batch=11, **FORMS[name])
    schedule = RecurrenceMmaSchedule(16, 8, 1, exchange, 1 if exchange == CLUSTER else 2)
    check(checking_execution, MMA, problem, schedule)


SCHEDULES = [
    RecurrenceMmaSchedule(units=16, sequences=8, warps=2, exchange=CLUSTER, teams=1),
    RecurrenceMmaSchedule(units=32, sequences=16, warps=4, exchange=CLUSTER, teams=1),
    RecurrenceMmaSchedule(units=16, sequences=16, warps=4, exchange=GRID, teams=1),
    RecurrenceMmaSchedule(units=32, sequences=8, warps=4, exchange=GRID, teams=2),
    RecurrenceMmaSchedule(units=16, sequences=16, warps=4, exchange=WORDS, teams=1),
    RecurrenceMmaSchedule(units=32, sequences=8, warps=4, exchange=WORDS, teams=2),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_every_way_to_share_the_units(schedule: RecurrenceMmaSchedule, fast_execution: Any) -> None:
    problem = recurrence(
        Cell.GRU,
        hidden=128,
        batch=19,
        steps=5,
        time_major=True,
        linear_before_reset=True,
        precision=Precision.BF16,
    )
    check(fast_execution, MMA, problem, schedule)


def test_one_block_may_have_all_units(checking_execution: Any) -> None:
    for exchange in (CLUSTER, GRID, WORDS):
        schedule = RecurrenceMmaSchedule(32, 8, 1, exchange, 1)
        check(checking_execution, MMA, recurrence(batch=19), schedule)


@pytest.mark.parametrize("batch", [1, 8, 21])
def test_takes_a_free_batch(batch: int, fast_execution: Any) -> None:
    problem = recurrence(batch=Extent(1, "N"), given=SOME)
    for exchange in (CLUSTER, GRID, WORDS):
        check(fast_execution, MMA, problem, RecurrenceMmaSchedule(16, 8, 1, exchange, 1), batch)
    check(fast_execution, SIMT, problem, RecurrenceSimtSchedule(warps=4, rows=4), batch)


def test_one_step_hands_nothing_on(checking_execution: Any) -> None:
    problem = recurrence(steps=1, given=ALL, slots=3)
    for exchange in (CLUSTER, GRID, WORDS):
        check(checking_execution, MMA, problem, RecurrenceMmaSchedule(16, 8, 1, exchange, 1))


def test_states_in_fp32_of_weights_in_16_bits(fast_execution: Any) -> None:
    wide = recurrence(precision=Precision.FP32)
    problem = recurrence(p=wide.p, y=wide.y, bias=wide.bias)
    assert problem.r.dtype is DType.FP16
    check(fast_execution, MMA, problem, RecurrenceMmaSchedule(16, 8, 1, CLUSTER, 1))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (recurrence(precision=Precision.FP32), "R is fp32; tensor cores multiply 16 bits here"),
        (recurrence(hidden=48), "48 units; multiples of 32 are carried"),
        (recurrence(Cell.GRU), "a GRU that resets h in front of its product"),
    ],
)
def test_refuses_in_words(problem: Recurrence, words: str) -> None:
    assert words in str(MMA.why_not(problem, H200))


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (RecurrenceMmaSchedule(24, 8, 1, GRID, 1), "a block has multiples of 16 units"),
        (RecurrenceMmaSchedule(16, 8, 1, CLUSTER, 1), "a cluster has at most 16 blocks"),
        (RecurrenceMmaSchedule(16, 8, 64, GRID, 1), "a block has 1 to 16 warps"),
        (RecurrenceMmaSchedule(16, 8, 1, GRID, 1), "a thread has at most 255 registers"),
        (RecurrenceMmaSchedule(16, 8, 8, GRID, 4), "run at once on 132 SMs"),
    ],
)
def test_schedules_are_refused_in_words(schedule: RecurrenceMmaSchedule, words: str) -> None:
    problem = recurrence(hidden=1024, batch=32)
    assert words in str(MMA.why_illegal(problem, schedule, H200))


def test_clusters_are_as_large_as_those_of_the_target() -> None:
    """A launch of 16 blocks that a consumer GPU refuses would be known only there."""
    problem = recurrence(hidden=256)
    blocks = {
        name: set((256 // columns["units"][columns["exchange"] == CLUSTER]).tolist())
        for name in ("h200", "rtx5090", "a100")
        for _, columns in [MMA.space(problem, find_target(name))]
    }
    assert blocks == {"h200": {8, 16}, "rtx5090": {8}, "a100": set()}
    schedule = RecurrenceMmaSchedule(16, 8, 1, CLUSTER, 1)
    words = str(MMA.why_illegal(problem, schedule, find_target("rtx5090")))
    assert "clusters of rtx5090 have at most 8 blocks" in words


@pytest.mark.parametrize("hidden", [256, 1024])
@pytest.mark.parametrize("batch", [1, 32])
@pytest.mark.parametrize("cell", [Cell.LSTM, Cell.GRU])
def test_what_is_measured_keeps_its_weights_on_the_chip(
    cell: Cell, batch: int, hidden: int
) -> None:
    resets = {"linear_before_reset": True} if cell is Cell.GRU else {}
    problem = recurrence(cell, batch=batch, hidden=hidden, steps=50, **resets)
    assert MMA.why_not(problem, H200) is None
    _, columns = MMA.space(problem, H200)
    ways = set(columns["exchange"].tolist())
    assert ways == ({CLUSTER, GRID, WORDS} if hidden == 256 else {GRID, WORDS})
