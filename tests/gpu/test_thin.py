"""Products by a weight that stays on the GPU: against float64, and themselves again and again, launched early."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.launches.problem_launches import on_device
from support.problems.thin_products import swin, thin

from wpk.device import CudaDevice
from wpk.dtypes import DType, Precision
from wpk.libraries.reference import random_case, worst_error
from wpk.problems import Matmul, NormKind
from wpk.schedules.wgmma.thin import ThinWgmmaSchedule, ThinWgmmaTemplate
from wpk.targets.registry import find_target

pytestmark = pytest.mark.gpu

REPETITIONS = 20
"""Launches of each case: what is not ordered may come out right now and then."""

EVERY = 7
"""One of so many legal schedules is executed."""

TEMPLATE, H200 = ThinWgmmaTemplate(), find_target("h200")
LAYER, RMS = NormKind.LAYER, NormKind.RMS
QUERIES, PROJECTION = swin(50177)
PROBLEMS = {
    "queries of Swin": QUERIES,
    "a projection of Swin": PROJECTION,
    "moments of the rows, bf16": thin(35001, 192, 96, norm=LAYER, precision=Precision.BF16),
    "moments are stored": thin(35001, 96, 96, stored=LAYER, residual=True),
    "odd, bias fp32": thin(1031, 37, 40, bias=DType.FP32, norm=RMS),
    "the widest rows": thin(2050, 300, 256, gelu=True),
}


@pytest.fixture(name="hopper")
def fixture_hopper(cuda: CudaDevice) -> CudaDevice:
    """The GPU, which must have wgmma."""
    if cuda.capability != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    return cuda


def schedules(problem: Matmul) -> list[ThinWgmmaSchedule]:
    """From all over the space."""
    _, legal = TEMPLATE.space(problem, H200)
    return [TEMPLATE.schedule(legal, row) for row in range(0, len(legal["ahead"]), EVERY)]


@pytest.mark.memcheck
@pytest.mark.racecheck
@pytest.mark.parametrize("name", PROBLEMS)
def test_schedules_agree_with_float64(hopper: CudaDevice, name: str) -> None:
    problem = PROBLEMS[name]
    case = random_case(problem, 3)
    for schedule in schedules(problem):
        run = on_device(hopper, TEMPLATE, problem, schedule, case.operands)
        assert worst_error(run(), case) <= 1, schedule


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_schedule_repeats_itself(hopper: CudaDevice, name: str) -> None:
    problem = PROBLEMS[name]
    case = random_case(problem, 4)
    for schedule in (schedules(problem)[0], schedules(problem)[-1]):
        run = on_device(hopper, TEMPLATE, problem, replace(schedule, early=1), case.operands)
        first = run()
        for _ in range(REPETITIONS):
            np.testing.assert_array_equal(run(), first)
