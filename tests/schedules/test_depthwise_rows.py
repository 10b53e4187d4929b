"""Depthwise convolutions down the rows: numbers on the emulator, planted faults, refusals, machine code."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from subjects.problems import channels_first, channels_last, convolution
from support.faults.planter import Fault, change, drop, plant

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.errors import CompileError
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue
from wpk.schedules.depthwise_rows import DepthwiseRowsSchedule, DepthwiseRowsTemplate
from wpk.targets.registry import find_target

TEMPLATE = DepthwiseRowsTemplate()
H200 = find_target("h200")
STRIP = DepthwiseRowsSchedule(vector=2, pixels=4, rows=7, lanes=8, threads=64)
_TAIL: dict[str, Any] = {"bias": DType.FP32, "residual": True, "relu": True}

CASES: dict[str, tuple[dict[str, Any], DepthwiseRowsSchedule]] = {
    "7x7": ({"c": 24, "size": (17, 13), "filter": 7, "n": 2}, replace(STRIP, early=1)),
    "5x5, strips of the whole image": (
        {"c": 20, "size": (9, 10), "filter": 5, "n": 3},
        replace(STRIP, rows=14, vector=4, lanes=4),
    ),
    "3x3": ({"c": 40, "size": (15, 9), "n": 2}, replace(STRIP, pixels=8, lanes=16)),
    "one channel a thread": (
        {"c": 33, "size": (8, 9), "n": 2},
        replace(STRIP, vector=1, pixels=7, lanes=32),
    ),
    "eight channels a thread": (
        {"c": 40, "size": (9, 9), "n": 2},
        replace(STRIP, vector=8, pixels=2, lanes=4),
    ),
    "strided and dilated along a row": (
        {
            "c": 16,
            "size": (9, 20),
            "stride": (1, 2),
            "dilation": (1, 2),
            "pads": (1, 2, 1, 2),
            "n": 3,
        },
        STRIP,
    ),
    "asymmetric": (
        {"c": 16, "size": (9, 12), "filter": (4, 2), "pads": (0, 1, 2, 0), "n": 3},
        STRIP,
    ),
    "no padding": ({"c": 16, "size": (12, 12), "filter": (5, 3), "pads": 0, "n": 3}, STRIP),
    "several outputs of a channel": ({"c": 8, "k": 16, "size": (9, 9), "n": 3}, STRIP),
}


def depthwise(c: int, **given: Any) -> Convolution:
    return convolution(c, given.pop("k", c), groups=c, **given)


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_float64(
    case: str, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    given, schedule = CASES[case]
    problem = depthwise(**given, **_TAIL)
    assert TEMPLATE.why_not(problem, H200) is None
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, TEMPLATE, problem, schedule)


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_other_types_agree_with_float64(
    precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = depthwise(24, size=(9, 11), filter=5, n=2, precision=precision, **_TAIL)
    check_convolution(fast_execution, TEMPLATE, problem, STRIP)


def test_zeros_follow_the_last_channel(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = depthwise(22, size=(9, 11), n=2)
    y = channels_last(DType.FP16, problem.k, problem.p, problem.q, 10)
    problem = replace(problem, y=y, epilogue=Epilogue())
    check_convolution(checking_execution, TEMPLATE, problem, STRIP)


def test_the_batch_is_decided_at_run_time(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = depthwise(16, size=(9, 11), n=Extent(2, free="batch"), **_TAIL)
    check_convolution(checking_execution, TEMPLATE, problem, STRIP, batch=5)


FAULTS = [
    Fault("filters are read before they are there", drop("filters_there")),
    Fault("x is read before the kernel in front has ended", drop("previous_awaited")),
    Fault("rows outside of the image", change("row_exists", "h >= 0 &&", "")),
    Fault("rows behind the last one", change("row_stored", "&& first + done < Problem::p", "")),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_seen(
    fault: Fault, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = depthwise(20, size=(9, 11), n=2, **_TAIL)
    with pytest.raises((AssertionError, EmulatorError)):
        check_convolution(
            checking_execution, plant(TEMPLATE, fault), problem, replace(STRIP, early=1)
        )


PLAIN = depthwise(16)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (convolution(32, groups=4), "as many groups as channels"),
        (depthwise(16, stride=2), "a stride of 2 and a dilation of 1 down the image"),
        (depthwise(16, dilation=2, pads=2), "a stride of 1 and a dilation of 2"),
        (depthwise(16, filter=(1, 3), pads=(0, 1, 0, 1)), "a filter of one row"),
        (replace(PLAIN, transposed=True), "transposed"),
        (depthwise(16, layout=channels_first), "neighbours in the output are no channels"),
    ],
)
def test_refuses_in_words(problem: Convolution, words: str) -> None:
    reason = TEMPLATE.why_not(problem, H200)
    assert reason is not None
    assert words in reason


def test_long_strips_are_tried_where_they_fill_the_gpu() -> None:
    for images, rows in ((1, {7}), (32, {7, 14, 28, 56})):
        _, legal = TEMPLATE.space(depthwise(96, size=56, filter=7, n=images), H200)
        assert set(legal["rows"]) == rows


@pytest.mark.parametrize(
    "schedule",
    [
        DepthwiseRowsSchedule(2, 8, 14, 16, 128, 1),
        DepthwiseRowsSchedule(8, 2, 7, 4, 128, 1),
        replace(STRIP, threads=48),
        replace(STRIP, lanes=24),
        replace(STRIP, pixels=16, vector=4),
    ],
    ids=str,
)
def test_what_is_legal_compiles_and_nothing_else(schedule: DepthwiseRowsSchedule) -> None:
    problem = depthwise(96, size=56, filter=7, n=Extent(32), **_TAIL)
    (source,) = TEMPLATE.instantiate(problem, schedule)
    if TEMPLATE.why_illegal(problem, schedule, H200) is None:
        resources = load_nvrtc().compile(source, H200.arch).resources
        assert resources.spill_store_bytes == 0
    else:
        with pytest.raises(CompileError):
            load_nvrtc().compile(source, H200.arch)


@pytest.mark.parametrize(
    "schedule",
    [STRIP, DepthwiseRowsSchedule(2, 7, 7, 32, 128, 1), DepthwiseRowsSchedule(4, 8, 28, 4, 128)],
    ids=str,
)
def test_the_compiler_keeps_every_product(schedule: DepthwiseRowsSchedule) -> None:
    """NVRTC 13.0 had sums that memcpy moved up share a register, and left their products out."""
    problem = depthwise(96, size=28, n=Extent(32))
    (source,) = TEMPLATE.instantiate(problem, schedule)
    ptx = load_nvrtc().ptx(source, H200.arch)
    assert ptx.count(b"fma.rn.f32") == 9 * schedule.pixels * schedule.vector


def test_the_unit_is_the_reviewed_one(assert_golden: Callable[[str, str], None]) -> None:
    problem = depthwise(96, size=56, filter=7, n=Extent(32), bias=DType.FP32)
    (source,) = TEMPLATE.instantiate(problem, DepthwiseRowsSchedule(2, 8, 14, 16, 128, 1))
    assert_golden("schedules/depthwise_rows.cu", source.text)
