"""Feed-forward blocks on the GPU: against float64, and themselves again and again, launched early."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.launches.problem_launches import on_device
from support.problems.feed_forwards import feed_forward

from wpk.device import CudaDevice
from wpk.dtypes import Precision
from wpk.libraries.reference import random_case, worst_error
from wpk.problems import FeedForward, NormKind
from wpk.schedules.wgmma.feed_forward import FeedForwardWgmmaSchedule, FeedForwardWgmmaTemplate
from wpk.targets.registry import find_target

pytestmark = pytest.mark.gpu

REPETITIONS = 20
"""Launches of each case: what is not ordered may come out right now and then."""

EVERY = 7
"""One of so many legal schedules is executed."""

TEMPLATE, H200 = FeedForwardWgmmaTemplate(), find_target("h200")
LAYER, RMS = NormKind.LAYER, NormKind.RMS
PROBLEMS = {
    "a block of Swin": feed_forward(12544, 96, 384, norm=LAYER),
    "a block of ConvNeXt": feed_forward(6272, 192, 768, norm=LAYER, scaled=True),
    "odd, another width behind": feed_forward(1031, 48, 200, n=96, norm=RMS),
    "rows as they are, by columns": feed_forward(2050, 160, 640, residual=False),
    "the widest rows, bf16": feed_forward(777, 256, 1000, precision=Precision.BF16, norm=LAYER),
}


@pytest.fixture(name="hopper")
def fixture_hopper(cuda: CudaDevice) -> CudaDevice:
    """The GPU, which must have wgmma."""
    if cuda.capability != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    return cuda


def schedules(problem: FeedForward) -> list[FeedForwardWgmmaSchedule]:
    """From all over the space, some of them with weights that stay."""
    _, legal = TEMPLATE.space(problem, H200)
    return [TEMPLATE.schedule(legal, row) for row in range(0, len(legal["stages"]), EVERY)]


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
