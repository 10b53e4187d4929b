"""Squeeze and excitation: numbers in float64 at odd shapes, both layouts, all ways to share the work."""

from dataclasses import replace
from typing import Any

import pytest
from support.problems.squeezes import error_of, squeeze

from wpk.dtypes import Precision
from wpk.problems import Squeeze
from wpk.schedules.squeeze import SqueezeSchedule, SqueezeTemplate
from wpk.targets.registry import find_target

TEMPLATE, H200 = SqueezeTemplate(), find_target("h200")
FOUR = SqueezeSchedule(blocks=4, threads=64, staged=1, by_pixels=0, early=1)
ONE = SqueezeSchedule(blocks=1, threads=32, staged=0, by_pixels=0)


@pytest.mark.parametrize(
    ("problem", "schedule"),
    [
        (squeeze(37, 21, 9, n=2), FOUR),
        (squeeze(37, 21, 9, padded=True), replace(FOUR, by_pixels=1)),
        (squeeze(70, 10, 12, precision=Precision.FP32, activation="silu"), replace(FOUR, staged=0)),
        (squeeze(24, 9, 5, precision=Precision.TF32, activation="gelu", n=3), ONE),
        (
            squeeze(40, 50, 17, precision=Precision.BF16, gate="hardsigmoid"),
            replace(FOUR, threads=32),
        ),
        (squeeze(13, 23, 6, channels_last=False, activation="hardswish"), FOUR),
        (squeeze(13, 23, 6, channels_last=False), replace(FOUR, by_pixels=1, staged=0)),
        (squeeze(33, 30, 20, k=11, scales=False, gate="none"), replace(FOUR, by_pixels=1)),
        (squeeze(19, 1, 30, k=43, scales=False, n=2, padded=True), FOUR),
    ],
)
def test_agrees_with_float64(
    problem: Squeeze, schedule: SqueezeSchedule, checking_execution: Any
) -> None:
    assert TEMPLATE.why_not(problem, H200) is None
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    assert error_of(checking_execution, problem, schedule) <= 1
