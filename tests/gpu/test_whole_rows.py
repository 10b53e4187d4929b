"""Kernels of warpgroups with whole rows in shared memory, on the GPU: against float64, and themselves again and again, launched early.

Feed-forward blocks, and thin products, whose matrix stays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.launches.problem_launches import on_device
from support.problems.feed_forwards import feed_forward
from support.problems.thin_products import swin, thin

from wpk.device import CudaDevice
from wpk.dtypes import DType, Precision
from wpk.libraries.reference import random_case, worst_error
from wpk.problems import FeedForward, Matmul, NormKind
from wpk.schedules.wgmma.feed_forward import FeedForwardWgmmaTemplate
from wpk.schedules.wgmma.thin import ThinWgmmaTemplate
from wpk.targets.registry import find_target

pytestmark = pytest.mark.gpu

REPETITIONS = 20
"""Launches of each case: what is not ordered may come out right now and then."""

EVERY = 7
"""One of so many legal schedules is executed."""

H200 = find_target("h200")
BLOCK, THIN = FeedForwardWgmmaTemplate(), ThinWgmmaTemplate()
LAYER, RMS = NormKind.LAYER, NormKind.RMS
QUERIES, PROJECTION = swin(50177)
PROBLEMS: dict[str, tuple[Any, FeedForward | Matmul]] = {
    "a block of Swin": (BLOCK, feed_forward(12544, 96, 384, norm=LAYER)),
    "a block of ConvNeXt": (BLOCK, feed_forward(6272, 192, 768, norm=LAYER, scaled=True)),
    "a block, odd, another width behind": (BLOCK, feed_forward(1031, 48, 200, n=96, norm=RMS)),
    "a block, rows as they are, by columns": (
        BLOCK,
        feed_forward(2050, 160, 640, residual=False),
    ),
    "a block of the widest rows, bf16": (
        BLOCK,
        feed_forward(777, 256, 1000, precision=Precision.BF16, norm=LAYER),
    ),
    "queries of Swin": (THIN, QUERIES),
    "a projection of Swin": (THIN, PROJECTION),
    "moments of the rows, bf16": (
        THIN,
        thin(35001, 192, 96, norm=LAYER, precision=Precision.BF16),
    ),
    "moments are stored": (THIN, thin(35001, 96, 96, stored=LAYER, residual=True)),
    "odd, bias fp32": (THIN, thin(1031, 37, 40, bias=DType.FP32, norm=RMS)),
    "the widest rows": (THIN, thin(2050, 300, 256, gelu=True)),
}


@pytest.fixture(name="hopper")
def fixture_hopper(cuda: CudaDevice) -> CudaDevice:
    """The GPU, which must have wgmma."""
    if cuda.capability != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    return cuda


def schedules(template: Any, problem: Any) -> list[Any]:
    """From all over the space."""
    _, legal = template.space(problem, H200)
    return [template.schedule(legal, row) for row in range(0, len(legal["warpgroups"]), EVERY)]


@pytest.mark.memcheck
@pytest.mark.racecheck
@pytest.mark.parametrize("name", PROBLEMS)
def test_schedules_agree_with_float64(hopper: CudaDevice, name: str) -> None:
    template, problem = PROBLEMS[name]
    case = random_case(problem, 3)
    for schedule in schedules(template, problem):
        run = on_device(hopper, template, problem, schedule, case.operands)
        assert worst_error(run(), case) <= 1, schedule


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_schedule_repeats_itself(hopper: CudaDevice, name: str) -> None:
    template, problem = PROBLEMS[name]
    case = random_case(problem, 4)
    tried = schedules(template, problem)
    for schedule in (tried[0], tried[-1]):
        run = on_device(hopper, template, problem, replace(schedule, early=1), case.operands)
        first = run()
        for _ in range(REPETITIONS):
            np.testing.assert_array_equal(run(), first)
