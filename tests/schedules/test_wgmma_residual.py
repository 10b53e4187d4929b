"""Residuals that tensor copies bring to shared memory: numbers on the emulator under every check, and legality."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.problems.network_layers import resnet
from support.problems.warpgroup_layers import at, convolution, in_precisions, limited, matmul

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.problems import Convolution, Matmul, Tensor
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.multicast import COLUMNS, ROWS
from wpk.schedules.wgmma.residual import residual_of
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV, GEMM = TEMPLATE_OF["conv_wgmma"], TEMPLATE_OF["gemm_wgmma"]
H200 = find_target("h200")
TILE = WgmmaSchedule(64, 64, 64, 2, early=1, residual=1)
PRECISIONS = [Precision.FP16, Precision.BF16, Precision.TF32, Precision.FP32]


def pointwise(**more: Any) -> Convolution:
    """5 x 9 pixels of 3 images, 1 x 1; 264 columns end inside of a tile."""
    sizes = {"size": (5, 9), "n": 3, "c": 72, "k": 264}
    return convolution(filter=(1, 1), pads=(0, 0, 0, 0), **{**sizes, **more})


SCHEDULES = [
    TILE,
    replace(TILE, block_m=128, block_n=128),
    replace(TILE, block_n=112),  # boxes of 16 columns
    replace(TILE, block_n=32),
    replace(TILE, block_n=256, early=0),
    replace(TILE, share=ROWS),
    replace(TILE, share=COLUMNS),
    replace(TILE, persistent=2),
    replace(TILE, block_m=128, block_n=128, persistent=1),
    replace(TILE, block_n=128, persistent=2, residual=2),
    replace(TILE, block_n=32, stages=3, persistent=3, residual=2),
    replace(TILE, share=COLUMNS, persistent=2),
    replace(TILE, block_n=128, persistent=2, pingpong=1, residual=2),
    replace(TILE, block_m=128, persistent=1, pingpong=1, residual=2),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_every_kind_of_schedule_agrees_with_float64_under_every_check(
    schedule: WgmmaSchedule, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = pointwise()
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule)
