"""Faults planted in norms of clusters: checking mode or the comparison with float64 sees each of them."""

from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant, together

from wpk.dtypes import DType
from wpk.emulator import EmulatorError
from wpk.expression import Operand
from wpk.extent import Extent
from wpk.problems import Epilogue, Normalisation, Tensor
from wpk.problems.normalisation import NormKind
from wpk.schedules.normalisation_cluster import (
    NormalisationClusterSchedule,
    NormalisationClusterTemplate,
)

SCHEDULE = NormalisationClusterSchedule(vector=2, threads=64, blocks=2, cached=1)
FAULTS = [
    Fault("numbers are combined before other blocks have sent them", drop("numbers_there")),
    Fault("all numbers come to one place", change("number_placed", "places + rank", "places")),
    Fault(
        "the second statistic is the first's place",
        change("meeting_places", "meeting * blocks", "0 * blocks"),
    ),
    Fault("fewer bytes are announced than come", change("bytes_announced", "blocks *", "1 *")),
    Fault(
        "blocks send before others have barriers",
        together(drop("meetings_told"), drop("meetings_prepared")),
    ),
    Fault(
        "the last element is left out of each run",
        change("taken", "own + f(row[v])", "own + (v ? Number(0) : f(row[v]))"),
    ),
]
_IN_EVERY_RUN = (1,)
"""Faults that are planted in every run: a kernel is compiled for each."""


def _error(execution: Any, template: Any) -> float:
    """Of two groups of 37 pixels and 6 channels, in what is allowed."""
    x = Tensor(DType.FP32, (37 * 12, 6, 12, 1), alignment=8)
    problem = Normalisation(
        NormKind.LAYER, Extent(1), (1, 2), 6, 1e-5, Operand(0), (x,), x, Epilogue(), lines=37
    )
    values = np.random.default_rng(3).normal(1.0, 2.0, (1, 2, 37, 6)).astype(np.float32)
    y = execution.run(template, problem, SCHEDULE, [execution.memory(x, values)], values.shape)
    wide = values.astype(np.float64)
    centred = wide - wide.mean((2, 3), keepdims=True)
    right = centred / np.sqrt((centred**2).mean((2, 3), keepdims=True) + 1e-5)
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
        error = _error(checking_execution, plant(NormalisationClusterTemplate(), fault))
    except (EmulatorError, AssertionError):
        return
    assert not error <= 1, "nobody noticed"


@pytest.mark.slow
def test_without_a_fault_nothing_is_seen(checking_execution: Any) -> None:
    assert _error(checking_execution, NormalisationClusterTemplate()) <= 1
