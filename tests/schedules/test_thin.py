"""Products by a weight that stays: numbers in float64 under every check, refusals, machine code, planted faults."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant
from support.machine_code.compiled_units import H200, NEAR
from support.machine_code.disassembly import listing
from support.machine_code.products_in_flight import touched_in_flight
from support.problems.thin_products import check, elsewhere, swin, thin

from wpk.build import count_tensor_core_instructions, load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.errors import CompileError
from wpk.extent import Extent
from wpk.performance import bound, estimate
from wpk.problems import Matmul, NormKind
from wpk.schedules.wgmma.gemm import GemmWgmmaTemplate
from wpk.schedules.wgmma.thin import ThinWgmmaSchedule, ThinWgmmaTemplate
from wpk.targets.registry import find_target

TEMPLATE = ThinWgmmaTemplate()
SCHEDULE = ThinWgmmaSchedule(warpgroups=2, block_n=32, early=1)
ALONE = replace(SCHEDULE, warpgroups=1)
KEPT = replace(ALONE, row_stages=2, persistent=2)
LAYER, RMS = NormKind.LAYER, NormKind.RMS

CASES: dict[str, tuple[Matmul, ThinWgmmaSchedule]] = {
    "a tile": (thin(64, 32, 16), replace(ALONE, early=0)),
    "odd everything": (thin(131, 72, 40, norm=RMS), SCHEDULE),
    "normed rows": (thin(197, 288, 96, norm=LAYER), replace(SCHEDULE, block_n=96)),
    "normed rows, several tiles": (thin(323, 96, 24, norm=LAYER), KEPT),
    "normed rows and a residual": (thin(197, 96, 160, norm=LAYER, residual=True), KEPT),
    "known moments": (
        thin(330, 288, 96, norm=LAYER, known=True),
        replace(KEPT, block_n=96, ahead=1),
    ),
    "known mean squares": (
        thin(150, 96, 160, norm=RMS, known=True, gelu=True),
        replace(SCHEDULE, ahead=1),
    ),
    "known moments and a residual": (
        thin(150, 96, 96, norm=LAYER, known=True, residual=True),
        replace(SCHEDULE, block_n=48, ahead=1),
    ),
    "a residual": (thin(450, 96, 96, residual=True), replace(KEPT, warpgroups=3, block_n=96)),
    "a GELU, three tiles of rows": (
        thin(450, 160, 40, gelu=True),
        replace(KEPT, row_stages=3, persistent=1, block_n=80, ahead=1),
    ),
    "six warpgroups": (
        thin(777, 64, 96, norm=LAYER),
        replace(SCHEDULE, warpgroups=6, persistent=1),
    ),
    "four steps ahead": (thin(197, 128, 96), replace(KEPT, ahead=1)),
    "odd columns": (thin(67, 37, 40, bias=DType.FP32), ALONE),
    "odd columns, ahead": (thin(67, 37, 96, norm=LAYER), replace(ALONE, block_n=16, ahead=1)),
    "rows with gaps": (thin(70, 24, 40, gap=8, residual=True), replace(ALONE, persistent=1)),
    "a padded output": (thin(70, 30, 40, padding=10, norm=RMS), ALONE),
    "the widest rows": (
        thin(70, 256, 256, norm=LAYER, gelu=True),
        replace(ALONE, block_n=256, early=0),
    ),
    "a row": (thin(1, 96, 64, norm=LAYER), ALONE),
    "moments are stored": (thin(197, 96, 96, stored=LAYER, residual=True), KEPT),
    "mean squares are stored": (
        thin(197, 128, 40, stored=RMS),
        replace(KEPT, block_n=64, ahead=1),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_float64_under_every_check(case: str, checking_execution: Any) -> None:
    problem, schedule = CASES[case]
    assert TEMPLATE.why_not(problem, H200) is None
    assert not list(problem.contradictions())
    check(checking_execution, problem, schedule)


BRAIN = {
    "normed rows": thin(197, 288, 96, norm=LAYER, precision=Precision.BF16),
    "a residual": thin(450, 96, 96, residual=True, precision=Precision.BF16),
    "moments are stored": thin(197, 96, 96, stored=LAYER, precision=Precision.BF16),
}


@pytest.mark.parametrize("case", BRAIN)
def test_bf16_agrees_with_float64_under_every_check(case: str, checking_execution: Any) -> None:
    check(checking_execution, BRAIN[case], CASES[case][1])
