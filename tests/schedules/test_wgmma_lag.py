"""Warpgroups that begin one behind the other: numbers under every check, refusals, machine code, planted faults."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.faults.planter import Fault, change, drop, plant
from support.problems.network_layers import dense, resnet
from support.problems.warpgroup_layers import (
    by_columns,
    convolution,
    knowing_moments,
    limited,
    matmul,
    normed,
)

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.extent import Extent
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Epilogue, NormKind
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma import costs
from wpk.schedules.wgmma.consumer_registers import product_registers
from wpk.schedules.wgmma.multicast import COLUMNS, ROWS
from wpk.schedules.wgmma.persistent import lag_steps
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV, GEMM = TEMPLATE_OF["conv_wgmma"], TEMPLATE_OF["gemm_wgmma"]
H200 = find_target("h200")
BEHIND = WgmmaSchedule(128, 64, 64, 3, early=1, persistent=2, lag=1)
WAYS = [
    replace(BEHIND, persistent=1, lag=1),
    replace(BEHIND, block_m=192, stages=6, lag=1),
    replace(BEHIND, block_m=192, block_n=96, share=ROWS, stages=4),
    replace(BEHIND, share=COLUMNS),
    replace(BEHIND, residual=1),
    replace(BEHIND, residual=2, lag=1),
]
LARGE = WgmmaSchedule(192, 192, 64, 4, early=1, persistent=132)


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16])
@pytest.mark.parametrize("case", [(300, 72, 264), (400, 136, 24)])
@pytest.mark.parametrize("schedule", WAYS, ids=str)
def test_products_agree_with_float64_under_every_check(
    case: tuple[int, int, int],
    precision: Precision,
    schedule: WgmmaSchedule,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    """Tiles of one step and of five, so that a warpgroup may be tiles ahead of another."""
    if schedule.block_n % 64:
        schedule = replace(schedule, block_n=64)
    check_matmul(checking_execution, GEMM, matmul(*case, precision=precision), schedule)


def test_convolutions_agree_with_float64_at_another_batch(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = replace(convolution(size=(13, 19), k=136, c=72), n=Extent(2, "n"))
    check_convolution(checking_execution, CONV, problem, BEHIND, batch=3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"persistent": 0}, "tiles of a persistent block"),
        ({"pingpong": 1}, "tiles of a persistent block"),
        ({"block_m": 64, "block_n": 256}, "tiles of a persistent block"),
        ({"lag": 2}, "lag is 0 or 1"),
        ({"block_m": 192, "stages": 2}, "between the first warpgroup and the last"),
        ({"block_n": 64}, "16384 sums: fewer are soon stored"),
    ],
)
def test_refuses_in_words(changes: dict[str, int], words: str) -> None:
    problem, schedule = dense(4096, 768, 768), replace(BEHIND, block_n=128, stages=4)
    assert GEMM.why_illegal(problem, schedule, H200) is None
    reason = GEMM.why_illegal(problem, replace(schedule, **changes), H200)
    assert reason is not None
    assert words in reason


def test_what_goes_through_registers_begins_at_once() -> None:
    fp32 = replace(BEHIND, block_k=32, block_n=128)
    reasons = [
        GEMM.why_illegal(dense(4096, 768, 768, precision=Precision.FP32), fp32, H200),
        CONV.why_illegal(
            limited(replace(resnet(n=32), epilogue=Epilogue())), replace(fp32, block_k=64), H200
        ),
    ]
    for reason in reasons:
        assert reason is not None
        assert "multiplied as they come" in reason
    assert GEMM.axes(dense(4096, 768, 768, precision=Precision.FP32), H200)["lag"] == (0,)
    assert GEMM.axes(dense(), H200)["lag"] == (0,)


def test_models_count_what_is_stored_while_others_multiply() -> None:
    problem = by_columns(matmul(6304, 3072, 768))
    least = bound(problem, H200)
    at_once, behind = (
        float(estimate(GEMM.work(problem, each.columns(), H200), least, H200)[0])
        for each in (LARGE, replace(LARGE, lag=1))
    )
    assert 0.9 * at_once < behind < at_once


@pytest.mark.parametrize(
    ("schedule", "handed"),
    [
        (replace(LARGE, lag=1), 160),
        (LARGE, 160),
        (WgmmaSchedule(128, 256, 64, 4, early=1, persistent=132, lag=1, share=COLUMNS), 240),
        (WgmmaSchedule(128, 128, 64, 4, early=1, persistent=132, pingpong=1), 240),
        (WgmmaSchedule(192, 128, 64, 4, early=1, persistent=132), 0),
        (replace(LARGE, persistent=0), 0),
    ],
    ids=str,
)
def test_registers_are_handed_to_those_that_need_them(schedule: WgmmaSchedule, handed: int) -> None:
    """Of the largest tiles nothing spills, and ptxas takes the instructions that hand registers over."""
    problem = knowing_moments(normed(by_columns(matmul(6304, 3072, 768)), NormKind.LAYER))
    assert GEMM.why_illegal(problem, schedule, H200) is None
    assert int(costs.handed(problem, schedule.columns())[0]) == handed
    (source,) = GEMM.instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    assert "ignored" not in kernel.log
    assert "serialized" not in kernel.log
    (launch,) = GEMM.launches(problem, schedule)
    groups = 2 if schedule.pingpong else schedule.block_m // 64
    assert launch.block == (128 * groups + (128 if handed else 32), 1, 1)


def test_what_no_warpgroup_can_have_is_refused() -> None:
    """Of fp32 sums are kept twice."""
    problem = dense(8192, 4096, 768, precision=Precision.TF32)
    tall = WgmmaSchedule(192, 256, 32, 2, early=1, persistent=132)
    needed = product_registers(tall.columns(), problem.precision)
    assert needed[0] > 160
    assert int(costs.handed(problem, tall.columns())[0]) == 0
    assert GEMM.why_illegal(problem, tall, H200) is not None
    columns = GEMM.space(dense(4096, 3072, 768), H200)[1]
    assert np.any((columns["block_m"] == 192) & (columns["block_n"] == 192))


FAULTS = [
    Fault("a group waits for itself", change("start_awaited", "group - 1", "group")),
    Fault("a group does not let the next one begin", drop("start_passed")),
    Fault("no step is counted", change("start_counted", "--lag == 0", "lag == 0")),
]


def _check(template: Any, execution: Any, check_convolution: Callable[..., None]) -> None:
    problem = convolution(c=32, k=192, size=(13, 19), n=2)
    y = channels_last(DType.FP32, 192, 13, 19)
    problem = replace(problem, y=y, epilogue=Epilogue())
    check_convolution(execution, template, problem, BEHIND, integers=True)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_planted_fault_is_seen(
    fault: Fault, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    _check(CONV, checking_execution, check_convolution)
    with pytest.raises((EmulatorError, AssertionError)):
        _check(plant(CONV, fault), checking_execution, check_convolution)


@pytest.mark.parametrize(
    ("rows", "stages", "steps"),
    [(128, 2, 1), (128, 3, 1), (128, 4, 2), (128, 8, 2), (192, 3, 1), (192, 4, 1), (192, 6, 2)],
)
def test_the_lag_leaves_the_producer_two_stages(rows: int, stages: int, steps: int) -> None:
    """As the header counts it."""
    schedule = replace(BEHIND, block_m=rows, stages=stages)
    assert lag_steps(np.asarray([rows // 64]), schedule.columns())[0] == steps
    (source,) = GEMM.instantiate(dense(4096, 768, 768), schedule)
    said = (
        f"static_assert(wpk::WgmmaShape<Problem::Multiply, Schedule, 768, false>::lag == {steps});"
    )
    load_nvrtc().compile(replace(source, text=f"{source.text}\n{said}\n"), "sm_90a")
