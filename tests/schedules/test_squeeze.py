"""Squeeze and excitation: numbers in float64 at odd shapes, both layouts, all ways to share the work."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.problems.squeezes import error_of, squeeze

from wpk.dtypes import Precision
from wpk.extent import Extent
from wpk.performance import bound
from wpk.performance.estimate import estimate
from wpk.problems import Squeeze
from wpk.schedules.squeeze import SqueezeSchedule, SqueezeTemplate
from wpk.targets.registry import find_target

TEMPLATE, H200 = SqueezeTemplate(), find_target("h200")
FOUR = SqueezeSchedule(blocks=4, threads=64, staged=1, by_pixels=0, early=1)
ONE = SqueezeSchedule(blocks=1, threads=32, staged=0, by_pixels=0)


CASES = [
    (squeeze(37, 21, 9, padded=True), replace(FOUR, by_pixels=1)),
    (
        squeeze(70, 10, 12, precision=Precision.FP32, activation="silu", n=2),
        replace(FOUR, staged=0),
    ),
    (squeeze(13, 23, 6, channels_last=False, gate="hardsigmoid"), FOUR),
    (squeeze(19, 1, 30, k=43, scales=False, n=2, padded=True), FOUR),
]
RARER = [
    (squeeze(37, 21, 9, n=2), FOUR),
    (squeeze(24, 9, 5, precision=Precision.TF32, activation="gelu", n=3), ONE),
    (squeeze(40, 50, 17, precision=Precision.BF16), replace(FOUR, threads=32)),
    (squeeze(13, 23, 6, channels_last=False, activation="hardswish"), replace(FOUR, by_pixels=1)),
    (squeeze(33, 30, 20, k=11, scales=False, gate="none"), replace(FOUR, by_pixels=1)),
    (squeeze(300, 6, 70, precision=Precision.FP32), replace(ONE, threads=128)),
    (squeeze(130, 9, 40), replace(FOUR, blocks=16)),
    (squeeze(45, 21, 9, precision=Precision.FP32, padded=True), replace(FOUR, kept=1)),
]


@pytest.mark.parametrize(
    ("problem", "schedule"),
    [*CASES, *(pytest.param(*each, marks=pytest.mark.slow) for each in RARER)],
)
def test_agrees_with_float64(
    problem: Squeeze, schedule: SqueezeSchedule, checking_execution: Any
) -> None:
    assert TEMPLATE.why_not(problem, H200) is None
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    assert error_of(checking_execution, problem, schedule) <= 1


@pytest.mark.parametrize("by_pixels", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_what_is_kept_is_scaled(by_pixels: int, checking_execution: Any) -> None:
    """Of 37 channels in rows of 40; a thread has several pixels, and some have none."""
    problem = squeeze(37, 63, 9, padded=True, n=2)
    schedule = replace(FOUR, by_pixels=by_pixels, kept=1, threads=32)
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    assert error_of(checking_execution, problem, schedule, scales_itself=True) <= 1


def test_keeps_whole_runs_alone() -> None:
    kept = replace(FOUR, kept=1, threads=128)
    for problem in (squeeze(37, 21, 9), squeeze(40, 21, 9, channels_last=False)):
        assert "whole pieces of 16 bytes" in str(TEMPLATE.why_illegal(problem, kept, H200))
    assert TEMPLATE.why_illegal(squeeze(40, 21, 9), kept, H200) is None
    large = squeeze(480, 3136, 120)
    assert "shared memory" in str(TEMPLATE.why_illegal(large, kept, H200))


def test_the_unit_is_the_reviewed_one(assert_golden: Callable[[str, str], None]) -> None:
    (source,) = TEMPLATE.instantiate(squeeze(37, 21, 9, padded=True), replace(FOUR, by_pixels=1))
    assert_golden("schedules/squeeze.cu", source.text)


def test_clusters_copies_and_early_launches_are_used_where_they_exist() -> None:
    problem = squeeze(480, 196, 120)
    blocks = {
        name: set(TEMPLATE.space(problem, find_target(name))[1]["blocks"].tolist())
        for name in ("h200", "rtx5090", "a100", "rtx2080")
    }
    assert blocks == {
        "h200": {1, 2, 4, 8, 16},
        "rtx5090": {1, 2, 4, 8},
        "a100": {1},
        "rtx2080": {1},
    }
    a100, rtx2080 = find_target("a100"), find_target("rtx2080")
    alone = replace(ONE, threads=128)
    assert TEMPLATE.why_illegal(problem, alone, rtx2080) is None
    assert "no asynchronous copies" in str(
        TEMPLATE.why_illegal(problem, replace(alone, staged=1), rtx2080)
    )
    assert "no clusters" in str(TEMPLATE.why_illegal(problem, replace(FOUR, early=0), a100))
    pixels = replace(FOUR, by_pixels=1)
    row = squeeze(480, 1, 120, scales=False)
    assert "several pixels" in str(TEMPLATE.why_illegal(row, pixels, find_target("h200")))


MEASURED = [
    (squeeze(1152, 49, 48), (16, 512, 1, 0), 5.14),
    (squeeze(480, 196, 20), (8, 512, 0, 0), 7.56),
    (squeeze(480, 196, 20), (16, 512, 1, 1), 7.69),
    (squeeze(144, 3136, 6), (16, 1024, 1, 1), 11.46),
    (squeeze(32, 12544, 8), (16, 128, 1, 1), 21.15),
]
"""Schedules (blocks, threads, staged, by pixels) and microseconds on an H100, of the template's version 1."""


@pytest.mark.parametrize(("problem", "ways", "microseconds"), MEASURED)
def test_the_estimate_agrees_with_measurements(
    problem: Squeeze, ways: tuple[int, ...], microseconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of kernels whose blocks met at barriers of the cluster; a meeting took longer then."""
    monkeypatch.setattr("wpk.schedules.squeeze._MEETING_CYCLES", 2200.0)
    h100 = find_target("h100")
    schedule = SqueezeSchedule(*ways, kept=0, early=1)
    work = TEMPLATE.work(problem, schedule.columns(), h100)
    (seconds,) = estimate(work, bound(problem, h100), h100)
    assert 0.85 <= 1e6 * seconds / microseconds <= 1.15


def test_takes_a_free_batch(fast_execution: Any) -> None:
    problem = replace(squeeze(37, 21, 9, n=3), n=Extent(3, "N"))
    assert error_of(fast_execution, problem, FOUR) <= 1


def test_padding_along_pixels_is_refused() -> None:
    problem = squeeze(13, 23, 6, channels_last=False)
    padded = replace(problem, y=replace(problem.y, strides=(13 * 24, 24, 1), padding=1))
    assert "along its pixels" in str(TEMPLATE.why_not(padded, find_target("h200")))
