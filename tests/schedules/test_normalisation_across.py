"""Norms of rows that lie across memory: numbers in float64 at odd shapes, faults, refusals, and what the models say."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant, together

from wpk.dtypes import DType
from wpk.emulator import EmulatorError
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.performance import bound
from wpk.performance.estimate import estimate
from wpk.problems import Epilogue, Normalisation, Tensor
from wpk.problems.normalisation import NormKind
from wpk.schedules.normalisation import NormalisationTemplate
from wpk.schedules.normalisation_across import (
    NormalisationAcrossSchedule,
    NormalisationAcrossTemplate,
)
from wpk.targets.registry import find_target

TEMPLATE, H200 = NormalisationAcrossTemplate(), find_target("h200")
EPSILON = 1e-5
PAIR = NormalisationAcrossSchedule(rows=8, threads=64, blocks=2, early=1)
ONE = NormalisationAcrossSchedule(rows=16, threads=96, blocks=1)


def turned(rows: int = 512, cols: int = 3199) -> Normalisation:
    """The rows follow each other where they are read, and lie across where they are written: wav2vec2's first norm."""
    x = Tensor(DType.FP16, (cols, 1), alignment=2)
    y = Tensor(DType.FP16, (1, -(-rows // 8) * 8), padding=-rows % 8)
    vector = Tensor(DType.FP32, (1, 0), alignment=16, constant=True)
    tail = Epilogue(apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1)), (vector, vector))
    return Normalisation(
        NormKind.LAYER, Extent(rows), (rows,), cols, EPSILON, Operand(0), (x,), y, tail
    )


def images(kind: NormKind, along: bool = False) -> Normalisation:
    """Each channel of images whose channels are neighbours; written along the pixels, too, where they are asked for."""
    x = Tensor(DType.FP32, (13 * 37, 1, 13), alignment=4)
    y = Tensor(DType.FP32, (13 * 40, 40, 1), padding=3, alignment=16) if along else x
    shortcut = Epilogue(apply("Add", Acc(), Operand(0)), (x,))
    return Normalisation(kind, Extent(2, "n"), (2, 13), 37, EPSILON, Operand(0), (x,), y, shortcut)


def normalised(kind: NormKind, v: np.ndarray) -> np.ndarray:
    """Rows along the last axis."""
    if kind in (NormKind.SOFTMAX, NormKind.LOG_SOFTMAX):
        below = v - v.max(-1, keepdims=True)
        total = np.exp(below).sum(-1, keepdims=True)
        return np.exp(below) / total if kind is NormKind.SOFTMAX else below - np.log(total)
    mean = v.mean(-1, keepdims=True) if kind is NormKind.LAYER else 0.0
    return np.asarray((v - mean) / np.sqrt(((v - mean) ** 2).mean(-1, keepdims=True) + EPSILON))


@pytest.mark.parametrize("along", [False, True], ids=["across", "along"])
@pytest.mark.parametrize(
    ("kind", "schedule"),
    [
        (NormKind.LAYER, PAIR),
        (NormKind.SOFTMAX, replace(PAIR, blocks=4, threads=32)),
        (NormKind.LOG_SOFTMAX, ONE),
        (NormKind.RMS, replace(ONE, blocks=2)),
    ],
    ids=str,
)
def test_channels_agree_with_float64(
    kind: NormKind, schedule: NormalisationAcrossSchedule, along: bool, checking_execution: Any
) -> None:
    """Three images of 37 pixels and 13 channels, with a shortcut: two tiles, the second one not full."""
    problem = images(kind, along)
    assert TEMPLATE.why_not(problem, H200) is None
    rng = np.random.default_rng(0)
    values, shortcut = (rng.normal(each, 2.0, (3, 13, 37)).astype(np.float32) for each in (3, 0))
    memory = [checking_execution.memory(problem.inputs[0], each) for each in (values, shortcut)]
    y = checking_execution.run(TEMPLATE, problem, schedule, memory, values.shape, {"n": 3})
    expected = normalised(kind, values.astype(np.float64)) + shortcut
    scale = np.maximum(np.abs(expected), 1.0) + np.abs(shortcut)
    assert (np.abs(y - expected) <= 4 * 2.0**-24 * (16 + np.sqrt(37)) * scale).all()


@pytest.mark.parametrize("schedule", [PAIR, ONE], ids=str)
def test_turned_rows_with_what_follows(
    schedule: NormalisationAcrossSchedule,
    checking_execution: Any,
    assert_close: Callable[..., None],
) -> None:
    """21 rows of 53, their places padded to 24, with a scale and a shift of each."""
    problem = turned(21, 53)
    rng = np.random.default_rng(1)
    values = rng.normal(30, 1.0, (21, 53)).astype(np.float16)
    scale, shift = (rng.standard_normal(21).astype(np.float32) for _ in range(2))
    y = checking_execution.run(TEMPLATE, problem, schedule, [values, scale, shift], values.shape)
    rows = normalised(NormKind.LAYER, values.astype(np.float64))
    expected = rows * scale[:, None] + shift[:, None]
    magnitude = np.abs(scale[:, None]) * (np.abs(rows) + 30.0) + np.abs(shift[:, None])
    assert_close(y, expected, magnitude, out=2.0**-11, multiply=2.0**-24, reduction=53)


FAULTS = [
    Fault("statistics begin before all elements are there", drop("elements_there")),
    Fault("elements are stored before scales are there", drop("scales_there")),
    Fault("numbers are combined before other blocks have sent them", drop("numbers_there")),
    Fault("all numbers come to one place", change("number_placed", "places + tile.rank", "places")),
    Fault(
        "the second statistic is the first's place",
        change("meeting_places", "(meeting * rows + row)", "row"),
    ),
    Fault("fewer bytes are announced than come", change("bytes_announced", "blocks *", "1 *")),
    Fault(
        "blocks send before others have barriers",
        together(drop("meetings_told"), drop("meetings_prepared")),
    ),
    Fault("the first lane's elements are not counted", change("counted", "own + value", "own + (column ? value : Number(0))")),
]  # fmt: skip
_IN_EVERY_RUN = (0, 2)
"""Faults that are planted in every run: a kernel is compiled for each."""


def _error(execution: Any, template: Any) -> float:
    problem = images(NormKind.LAYER)
    rng = np.random.default_rng(3)
    values, shortcut = (rng.normal(each, 2.0, (2, 13, 37)).astype(np.float32) for each in (3, 0))
    memory = [execution.memory(problem.inputs[0], each) for each in (values, shortcut)]
    y = execution.run(template, problem, replace(PAIR, early=0), memory, values.shape, {"n": 2})
    right = normalised(NormKind.LAYER, values.astype(np.float64)) + shortcut
    return float(np.abs(y - right).max() / 1e-5)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(each, id=each.name, marks=() if place in _IN_EVERY_RUN else pytest.mark.slow)
        for place, each in enumerate(FAULTS)
    ],
)
def test_a_planted_fault_is_seen(fault: Fault, checking_execution: Any) -> None:
    try:
        error = _error(checking_execution, plant(TEMPLATE, fault))
    except (EmulatorError, AssertionError):
        return
    assert not error <= 1, "nobody noticed"


@pytest.mark.slow
def test_without_a_fault_nothing_is_seen(checking_execution: Any) -> None:
    assert _error(checking_execution, TEMPLATE) <= 1


def test_the_unit_is_the_reviewed_one(assert_golden: Callable[[str, str], None]) -> None:
    (source,) = TEMPLATE.instantiate(turned(), replace(PAIR, rows=16, threads=256, blocks=8))
    assert_golden("schedules/normalisation_across.cu", source.text)


def test_refuses_in_words() -> None:
    problem = turned()
    assert TEMPLATE.why_not(problem, H200) is None
    along = replace(problem, y=Tensor(DType.FP16, (3200, 1), alignment=2))
    assert "elements of rows follow each other" in str(TEMPLATE.why_not(along, H200))
    free = replace(problem, leading=Extent(512, "n"))
    assert "elements of rows follow each other" in str(TEMPLATE.why_not(free, H200))
    words = str(TEMPLATE.why_illegal(problem, replace(PAIR, rows=64, blocks=1, early=0), H200))
    assert "bytes of shared memory" in words
    assert "has no clusters" in str(
        TEMPLATE.why_illegal(problem, replace(PAIR, early=0), find_target("a100"))
    )
    assert "there are 13 rows" in str(
        TEMPLATE.why_illegal(images(NormKind.RMS), replace(PAIR, rows=32, early=0), H200)
    )


def test_tiles_are_chosen_where_single_rows_would_store_parts_of_sectors() -> None:
    """Measured: 36.7 us on an H100 by single rows, which store 1.6 million times 2 bytes."""
    problem = turned()
    h100 = find_target("h100")

    def least(template: Any, problem: Normalisation) -> float:
        _, columns = template.space(problem, h100)
        work = template.work(problem, columns, h100)
        return float(estimate(work, bound(problem, h100), h100).min())

    single = least(NormalisationTemplate(), problem)
    assert 25e-6 < single < 45e-6
    assert least(TEMPLATE, problem) < single / 3
    along = replace(problem, y=Tensor(DType.FP16, (3200, 1), alignment=2))
    assert least(NormalisationTemplate(), along) < single / 5, "it is the stores that cost"
