"""Registers that a producer hands over to the consumers of persistent blocks: to whom, of what machine code, with what numbers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.problems.network_layers import dense
from support.problems.warpgroup_layers import by_columns, knowing_moments, matmul, normed

from wpk.build import load_nvrtc
from wpk.dtypes import Precision
from wpk.problems import NormKind
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma import costs
from wpk.schedules.wgmma.consumer_registers import product_registers
from wpk.schedules.wgmma.multicast import COLUMNS
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

GEMM = TEMPLATE_OF["gemm_wgmma"]
H200 = find_target("h200")
LARGE = WgmmaSchedule(192, 192, 64, 4, early=1, persistent=132)


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16])
def test_products_agree_with_float64_under_every_check(
    precision: Precision, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    schedule = replace(LARGE, persistent=2, residual=1)
    assert costs.handed(matmul(400, 200, 136), schedule.columns())[0] > 0
    check_matmul(checking_execution, GEMM, matmul(400, 200, 136, precision=precision), schedule)


@pytest.mark.parametrize(
    ("schedule", "handed"),
    [
        (LARGE, 160),
        (WgmmaSchedule(128, 256, 64, 4, early=1, persistent=132, share=COLUMNS), 240),
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
