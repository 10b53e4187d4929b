"""Tiles whose columns are no power of two: numbers on the emulator, and which of them are tried."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import rows
from support.faults.planter import Fault, plant, rewrite
from support.problems.warpgroup_layers import convolution, matmul

from wpk.dtypes import DType, Precision
from wpk.problems import Epilogue, Tensor
from wpk.schedules.wgmma import widths
from wpk.schedules.wgmma.conv import ConvWgmmaTemplate
from wpk.schedules.wgmma.gemm import GemmWgmmaTemplate
from wpk.schedules.wgmma.staging import staged_at_once
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV, GEMM = ConvWgmmaTemplate(), GemmWgmmaTemplate()
H200 = find_target("h200")

SCHEDULES = [
    WgmmaSchedule(64, 48, 64, 3),
    WgmmaSchedule(64, 96, 64, 2, early=1),
    WgmmaSchedule(128, 112, 64, 2),
    WgmmaSchedule(64, 80, 64, 2, split=2),
    WgmmaSchedule(64, 96, 64, 2, split=3, cluster=1, early=1),
    WgmmaSchedule(64, 112, 64, 2, split=2, cluster=1),
    WgmmaSchedule(64, 96, 64, 3, share=1),
    WgmmaSchedule(64, 144, 64, 2, early=1, share=2),
    WgmmaSchedule(64, 192, 64, 2, persistent=2),
    WgmmaSchedule(64, 48, 64, 2, persistent=3, pingpong=1),
    WgmmaSchedule(64, 96, 64, 2, persistent=2),
    WgmmaSchedule(64, 80, 64, 2, persistent=3, pingpong=1),
    WgmmaSchedule(128, 144, 64, 2, persistent=2),
    WgmmaSchedule(64, 160, 64, 2, persistent=2, residual=1),
    WgmmaSchedule(64, 144, 64, 2, persistent=2, residual=2),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_every_kind_of_schedule_is_right_under_every_check(
    schedule: WgmmaSchedule, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(131, 392, 192)
    assert GEMM.why_illegal(problem, schedule, H200) is None
    check_matmul(checking_execution, GEMM, problem, schedule)


@pytest.mark.parametrize("width", [48, 80, 176])
def test_outputs_of_narrow_vectors_are_right(
    width: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Rows of 67 filters have no aligned vectors: each lane has more columns."""
    problem = convolution(k=67, size=(5, 9), n=2)
    check_convolution(checking_execution, CONV, problem, WgmmaSchedule(64, width, 64, 3))


def test_columns_that_lie_apart_are_right(
    checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(70, 100, 128)
    y = Tensor(DType.FP16, (0, 0, 1, 70))
    problem = replace(problem, y=y, epilogue=Epilogue())
    check_matmul(checking_execution, GEMM, problem, WgmmaSchedule(64, 48, 64, 2))


def test_lanes_that_take_all_their_columns_for_the_first_are_noticed(
    checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    """The negative control: how columns were dealt out to lanes for powers of two alone."""
    dealt = "kVectors / commonDivisor(kVectors, kWarpSize)"
    faulty = plant(
        GEMM, Fault("of powers of two", rewrite(dealt, "maxOf(1, kVectors / kWarpSize)"))
    )
    with pytest.raises(AssertionError):
        check_matmul(checking_execution, faulty, matmul(64, 96, 128), WgmmaSchedule(64, 48, 64, 2))


def test_tiles_fill_the_sms_once() -> None:
    """197 rows are four tiles of 64, which leave 33 of 132 SMs to the columns."""
    tried = widths.axis(197, 3072, 1, (64, 128), Precision.FP16, H200)
    assert 96 in tried
    assert set(tried) >= {16, 32, 64, 128, 256}
    assert 4 * -(-3072 // 96) == 128 <= H200.sm_count


@pytest.mark.parametrize(
    ("columns", "whole"),
    [(96, {96}), (144, {144}), (288, {96, 144}), (576, {144, 192}), (64, {64})],
)
def test_many_rows_have_widths_that_waste_no_column(columns: int, whole: set[int]) -> None:
    """A tile of 64 rows and 16 columns would fill each wave: no width gains one."""
    tried = widths.axis(100352, columns, 1, (64, 128, 192), Precision.FP16, H200)
    assert whole <= set(tried)
    assert not any(columns % width for width in whole)


def test_a_persistent_block_stages_the_most_columns_of_which_its_tile_is_a_multiple() -> None:
    widest = np.arange(16, 257, 16)
    found = staged_at_once(widest)
    assert dict(zip(widest.tolist(), found.tolist(), strict=True)) == {
        **dict.fromkeys((64, 128, 192, 256), 64),
        **dict.fromkeys((48, 96, 144, 240), 48),
        **dict.fromkeys((32, 160, 224), 32),
        **dict.fromkeys((16, 80, 112, 176, 208), 16),
    }


@pytest.mark.parametrize(("count", "columns"), [(1, 8), (7, 1000), (4096, 4096), (50176, 64)])
def test_widths_are_few_and_legal(count: int, columns: int) -> None:
    problem = replace(matmul(count, columns, 512), y=rows(DType.FP16, columns), epilogue=Epilogue())
    tried = widths.axis(count, columns, 1, (64, 128), Precision.FP16, H200)
    assert len(tried) <= 12
    for width in tried:
        assert GEMM.why_illegal(problem, WgmmaSchedule(64, width, 64, 2), H200) is None


@pytest.mark.parametrize(
    ("precision", "schedule", "reason"),
    [
        (Precision.FP16, WgmmaSchedule(64, 72, 64, 2), "multiple of 16"),
        (Precision.FP32, WgmmaSchedule(64, 96, 32, 2), "power of two"),
    ],
)
def test_other_widths_are_refused(
    precision: Precision, schedule: WgmmaSchedule, reason: str
) -> None:
    said = GEMM.why_illegal(matmul(512, 512, 512, precision=precision), schedule, H200)
    assert said is not None
    assert reason in said
