"""Filters and patches that stay: numbers on the emulator, legality against the header, machine code, refusals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.each_value import each_value
from support.machine_code.compiled_units import assert_compiles_as_modelled
from support.problems.warpgroup_layers import BIAS, TAPS, convolution, limited

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.errors import CompileError
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue
from wpk.schedules import packings
from wpk.schedules.conv_halo import ConvHaloTemplate, HaloSchedule
from wpk.targets.registry import find_target

TEMPLATE = ConvHaloTemplate()
H200, A100 = find_target("h200"), find_target("a100")
TILE = HaloSchedule(tile_p=7, tile_q=8, block_n=32, teams=2, patches=2, persistent=3)


def _slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


CASES: dict[str, dict[str, Any]] = {
    **TAPS,
    "stride 2 and 1": {"size": (9, 14), "stride": (2, 1)},
    "7x1": {"size": (17, 9), "filter": (7, 1), "pads": (3, 0, 3, 0)},
    "2x4": {"size": (10, 13), "filter": (2, 4), "pads": (1, 2, 0, 1), "k": 24},
}
PRECISIONS = [Precision.FP16, Precision.TF32, _slow(Precision.BF16)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_agrees_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(precision=precision, **CASES[case])
    assert TEMPLATE.why_not(problem, H200) is None
    check_convolution(fast_execution, TEMPLATE, problem, TILE)


@pytest.mark.parametrize("case", CASES)
def test_integers_are_exact_under_every_check(
    case: str, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(**CASES[case])
    y = channels_last(DType.FP32, problem.k, problem.p, problem.q)
    problem = replace(problem, y=y, epilogue=Epilogue())
    check_convolution(checking_execution, TEMPLATE, problem, TILE, integers=True)


SCHEDULES = [
    HaloSchedule(7, 7, 16),
    HaloSchedule(8, 8, 32, teams=2, early=1),
    HaloSchedule(4, 16, 32, patches=2, persistent=3),
    HaloSchedule(14, 14, 16, early=1),
    HaloSchedule(16, 16, 16),
    HaloSchedule(4, 14, 16, teams=3, persistent=5, early=1),
    HaloSchedule(2, 28, 16, teams=3, persistent=5, early=1),
    HaloSchedule(7, 7, 16, teams=2, patches=2),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("stride", [1, 2])
def test_every_kind_of_schedule_is_right_under_every_check(
    schedule: HaloSchedule,
    stride: int,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = convolution(c=72, k=72, size=(15, 18), stride=(stride, stride), n=2)
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, TEMPLATE, problem, schedule)


CARRYING: dict[str, dict[str, Any]] = {
    "3x3": {"c": 72, "size": (15, 18), "n": 2},
    "24 channels": {"c": 24, "k": 40, "size": (8, 9)},
    "7x1": {"size": (17, 9), "filter": (7, 1), "pads": (3, 0, 3, 0)},
    "2x4, dilated along": {
        "size": (10, 15),
        "filter": (2, 4),
        "dilation": (1, 2),
        "pads": (1, 3, 0, 3),
    },
}


@pytest.mark.parametrize("case", CARRYING)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "schedule",
    [
        HaloSchedule(8, 8, 16, teams=2, patches=2, carry=1, persistent=4, early=1),
        HaloSchedule(16, 8, 32, carry=1),
    ],
    ids=str,
)
def test_rows_that_are_carried_on_are_right(
    case: str,
    precision: Precision,
    schedule: HaloSchedule,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = convolution(precision=precision, **CARRYING[case])
    check_convolution(checking_execution, TEMPLATE, problem, schedule)


@pytest.mark.parametrize("case", ["1x5", "stride 2", "dilated down"])
def test_rows_are_not_carried_where_the_next_tap_reads_others(case: str) -> None:
    problem = {
        "1x5": convolution(size=(8, 90), filter=(1, 5), pads=(0, 2, 0, 2)),
        "stride 2": convolution(size=(16, 16), stride=(2, 2)),
        "dilated down": convolution(size=(16, 16), dilation=(2, 1), pads=(2, 1, 2, 1)),
    }[case]
    assert TEMPLATE.axes(problem, H200)["carry"] == (0,)
    assert "carry" in str(TEMPLATE.why_illegal(problem, HaloSchedule(8, 8, 32, carry=1), H200))


@pytest.mark.parametrize("batch", [1, 4])
def test_the_batch_is_decided_at_run_time(
    batch: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = replace(convolution(n=2), n=Extent(2, "n"))
    check_convolution(checking_execution, TEMPLATE, problem, TILE, batch=batch)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_no_number_reaches_only_the_windows_that_hold_it(
    value: float, fast_execution: Any
) -> None:
    problem = replace(convolution(k=16, size=(9, 11)), epilogue=Epilogue())
    x = np.random.default_rng(1).uniform(0.5, 1, (1, 64, 9, 11)).astype(np.float16)
    x[0, 1, 4, 5] = value
    w = np.random.default_rng(2).uniform(0.5, 1, (16, 64, 3, 3)).astype(np.float16)
    packed = packings.pack(TEMPLATE.packing(problem, TILE), w, problem)
    memory = [fast_execution.memory(problem.x, x), packed]
    y = fast_execution.run(TEMPLATE, problem, TILE, memory, (1, 16, 9, 11))
    p, q = np.ogrid[:9, :11]
    holds = (abs(p - 4) <= 1) & (abs(q - 5) <= 1)
    assert (np.isfinite(y) != holds).all()


RESNET = replace(
    convolution(size=(56, 56), n=64),
    epilogue=Epilogue(apply("Relu", apply("Add", Acc(), Operand(0))), (BIAS,)),
)
USUAL = HaloSchedule(8, 8, 64, teams=3, patches=2, persistent=132, early=1)


def test_the_unit_is_the_reviewed_one(assert_golden: Callable[[str, str], None]) -> None:
    (source,) = TEMPLATE.instantiate(RESNET, USUAL)
    (launch,) = TEMPLATE.launches(RESNET, USUAL)
    assert (launch.kernel, launch.entry) == (source.digest, source.entry)
    assert launch.attributes == ("early_launch",)
    assert_golden("schedules/conv_halo.cu", source.text)


@pytest.mark.parametrize(
    ("precision", "filters"),
    each_value([Precision.FP16, Precision.TF32, Precision.BF16], [16, 32, 64, 128, 256]),
)
def test_schedules_compile_without_spills_and_with_the_registers_that_are_expected(
    precision: Precision, filters: int
) -> None:
    few = (
        {"filter": (1, 3), "pads": (0, 1, 0, 1)} if filters == 256 else {}
    )  # those of nine taps take 295 KB
    problem = convolution(c=32, k=256, size=(56, 56), n=64, precision=precision, **few)
    teams = 3 if filters <= 64 else 1
    schedule = replace(USUAL, block_n=filters, teams=teams, patches=1, persistent=0)
    assert_compiles_as_modelled(TEMPLATE, problem, schedule, "hgmma")


@pytest.mark.parametrize("n", [1, 32])
def test_work_covers_the_problem(n: int) -> None:
    problem = replace(RESNET, n=Extent(n))
    total, columns = TEMPLATE.space(problem, H200)
    assert 30 <= len(columns["teams"]) <= total <= 40_000
    work = TEMPLATE.work(problem, columns, H200)
    assert (work.block_flops * work.blocks >= 2 * problem.macs).all()
    assert (work.store_bytes * work.blocks * 1.001 >= 2.0 * n * 64 * 56 * 56).all()
    read = work.blocks * work.block_transactions * H200.transaction_bytes
    assert (read >= 2.0 * n * 64 * 56 * 56).all()


def test_a_fifth_of_what_im2col_brings_comes_of_the_image_and_filters_come_once_a_block() -> None:
    tiles = TEMPLATE.work(RESNET, USUAL.columns(), H200)
    bytes_ = tiles.blocks[0] * tiles.block_transactions[0] * H200.transaction_bytes
    filters = 132 * 9 * 64 * 64 * 2
    im2col = 9 * 64 * 56 * 56 * 64 * 2
    assert im2col / 9 < bytes_ - filters < im2col / 5


ILLEGAL = [
    replace(USUAL, tile_p=16, tile_q=28, teams=1),
    replace(USUAL, tile_p=5, tile_q=14, teams=1),
    replace(USUAL, block_n=48),
    replace(USUAL, block_n=8),
    replace(USUAL, teams=-1),
    replace(USUAL, teams=7, block_n=16, patches=1),
    replace(USUAL, patches=0),
    replace(USUAL, patches=5, teams=1),
    replace(USUAL, persistent=-132),
    replace(USUAL, carry=2),
    replace(USUAL, carry=1, tile_p=7),
    replace(USUAL, carry=1, tile_p=4, tile_q=16),
    replace(USUAL, early=2),
]


@pytest.mark.parametrize("schedule", ILLEGAL, ids=str)
def test_what_python_refuses_the_header_refuses(schedule: HaloSchedule) -> None:
    assert TEMPLATE.why_illegal(RESNET, schedule, H200) is not None
    (source,) = TEMPLATE.instantiate(RESNET, schedule)
    with pytest.raises(CompileError, match="static assertion"):
        load_nvrtc().compile(source, "sm_90a")


REFUSALS = [
    (convolution(filter=(1, 1), pads=(0, 0, 0, 0)), H200, "1 taps"),
    (convolution(size=(14, 14), filter=(5, 5)), H200, "25 taps"),
    (convolution(precision=Precision.FP32), H200, "fp32"),
    (convolution(c=1024), H200, "16 filters of 9 taps and 1024 channels take 3"),
    (limited(convolution(pads=(0, 0, 0, 0))), H200, "limits"),
    (replace(RESNET, transposed=True), H200, "transposed"),
    (convolution(c=58), H200, "16"),
    (RESNET, A100, "wgmma"),
]


@pytest.mark.parametrize(("problem", "target", "reason"), REFUSALS)
def test_refuses_in_words(problem: Convolution, target: Any, reason: str) -> None:
    assert reason in str(TEMPLATE.why_not(problem, target))
