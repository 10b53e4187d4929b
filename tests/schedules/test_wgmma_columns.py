"""Warpgroups' sums that are stored by columns: numbers under every check, what Python counts, planted faults."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from subjects import problems
from subjects.problems import channels_last
from support.faults.planter import Fault, change, drop, plant, whole
from support.problems.warpgroup_layers import across, by_columns, limited
from support.problems.warpgroup_layers import matmul as with_residual

from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.emulator.build import compile_unit
from wpk.expression import Acc, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue, Matmul, Tensor
from wpk.schedules.matrix_epilogue import stores_by_columns
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma import costs
from wpk.schedules.wgmma.multicast import COLUMNS, ROWS
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV, GEMM = TEMPLATE_OF["conv_wgmma"], TEMPLATE_OF["gemm_wgmma"]
H200 = find_target("h200")
HALF, BRAIN, SINGLE, STRICT = Precision.FP16, Precision.BF16, Precision.TF32, Precision.FP32
SCALED = apply("Mul", apply("Add", Acc(), Operand(0)), Operand(1))


def matmul(
    m: int,
    n: int,
    k: int,
    *,
    bias: DType = DType.FP16,
    padding: int = 0,
    approximate: str = "none",
    **given: Any,
) -> Matmul:
    """With a bias and a GELU behind it, and zeros behind the rows of what is stored."""
    problem = by_columns(problems.matmul(m, n, k, **given), bias, approximate)
    alignment = 16 if (n + padding) % 8 == 0 else 2
    return replace(problem, y=Tensor(problem.y.dtype, (0, 0, n + padding, 1), padding, alignment))


def convolution(
    c: int, k: int, size: tuple[int, int], *, padding: int = 0, **given: Any
) -> Convolution:
    """With a bias and a GELU behind it."""
    return by_columns(problems.convolution(c, k, size, padding=(0, padding), **given))


TILE = WgmmaSchedule(block_m=64, block_n=64, block_k=64, stages=2)
SCHEDULES = [
    TILE,
    WgmmaSchedule(64, 16, 64, 2, early=1),
    WgmmaSchedule(128, 128, 64, 2, early=1),
    WgmmaSchedule(64, 96, 64, 2),
    WgmmaSchedule(128, 112, 64, 2),
    WgmmaSchedule(192, 176, 64, 2, early=1),
    WgmmaSchedule(64, 256, 64, 2),
    WgmmaSchedule(64, 48, 64, 2, split=2),
    WgmmaSchedule(128, 64, 64, 2, split=3, early=1),
    WgmmaSchedule(64, 64, 64, 2, split=2, cluster=1),
    WgmmaSchedule(64, 64, 64, 3, share=ROWS),
    WgmmaSchedule(128, 64, 64, 2, share=COLUMNS, early=1),
    WgmmaSchedule(64, 64, 64, 3, early=1, persistent=2),
    WgmmaSchedule(128, 128, 64, 2, persistent=3),
    WgmmaSchedule(192, 128, 64, 2, early=1, persistent=2),
    WgmmaSchedule(64, 32, 64, 3, share=ROWS, persistent=2),
    WgmmaSchedule(64, 128, 64, 3, early=1, persistent=2, pingpong=1),
    WgmmaSchedule(128, 64, 64, 2, persistent=3, pingpong=1),
    WgmmaSchedule(64, 64, 64, 3, share=COLUMNS, persistent=2, pingpong=1),
]
LAYER = matmul(267, 264, 200)
"""Rows and columns that end inside of every tile, and inside of what is stored together."""


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_every_kind_of_schedule_is_right_under_every_check(
    schedule: WgmmaSchedule, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    assert stores_by_columns(LAYER)
    assert GEMM.why_illegal(LAYER, schedule, H200) is None
    check_matmul(checking_execution, GEMM, LAYER, schedule)


ONE = TILE
STAY = replace(TILE, stages=3, early=1, persistent=2)
TURNS = replace(STAY, block_m=128, pingpong=1)
PARTS = replace(TILE, split=2)
MATMULS: dict[str, Matmul] = {
    "one row": matmul(1, 8, 136),
    "bf16": matmul(70, 136, 136, precision=BRAIN, bias=DType.BF16),
    "a bias of fp32": matmul(70, 136, 136, bias=DType.FP32),
    "bf16, a bias of fp32": matmul(70, 136, 136, precision=BRAIN, bias=DType.FP32),
    "a padded output": matmul(133, 67, 136, padding=5),
    "a padded output and a bias of fp32": matmul(133, 131, 136, padding=5, bias=DType.FP32),
    "by tanh": matmul(70, 72, 136, approximate="tanh"),
    "two operands and a number": replace(
        matmul(70, 72, 136),
        epilogue=Epilogue(
            SCALED, (Tensor(DType.FP32, (0, 0, 0, 1)), Tensor(DType.FP16, (0, 0, 0, 0)))
        ),
    ),
    "nothing behind": replace(matmul(70, 72, 136), epilogue=Epilogue()),
}


@pytest.mark.parametrize("schedule", [ONE, PARTS, STAY, TURNS], ids=str)
@pytest.mark.parametrize("case", MATMULS)
def test_every_kind_of_epilogue_is_right_under_every_check(
    case: str,
    schedule: WgmmaSchedule,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    assert stores_by_columns(MATMULS[case])
    check_matmul(checking_execution, GEMM, MATMULS[case], schedule)


@pytest.mark.parametrize("schedule", [ONE, PARTS, replace(TILE, split=2, cluster=1)], ids=str)
def test_matrices_of_a_batch_are_right(
    schedule: WgmmaSchedule, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = across(70, 136, 136, (2, 3))
    assert stores_by_columns(problem)
    check_matmul(checking_execution, GEMM, problem, schedule)


CONVOLUTIONS: dict[str, Convolution] = {
    "3x3": convolution(72, 136, (7, 9), n=3),
    "a padded output": convolution(64, 67, (9, 9), n=2, padding=5),
    "groups": convolution(128, 80, (7, 9), groups=2, n=3),
    "limits": limited(convolution(72, 64, (8, 6), filter=1, n=5)),
    "tf32 to fp16": replace(
        convolution(40, 72, (7, 9), n=2, precision=SINGLE), y=channels_last(DType.FP16, 72, 7, 9)
    ),
    "fp32 to fp16": replace(
        convolution(40, 72, (7, 9), n=2, precision=STRICT), y=channels_last(DType.FP16, 72, 7, 9)
    ),
}


@pytest.mark.parametrize("changes", [{}, {"split": 2}, {"persistent": 2}], ids=str)
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions_are_right_under_every_check(
    case: str,
    changes: dict[str, int],
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = CONVOLUTIONS[case]
    assert stores_by_columns(problem)
    depth = 128 // problem.precision.storage.bytes
    schedule = replace(TILE, block_k=depth, **changes)
    if problem.groups > 1 and schedule.persistent:
        pytest.skip("persistent blocks have one group")
    if problem.filter == (1, 1) and schedule.split > 1:
        schedule = replace(schedule, block_k=depth, stages=2)
    check_convolution(checking_execution, CONV, problem, schedule)


@pytest.mark.parametrize("rows", [1, 64, 200])
def test_rows_are_decided_at_run_time(
    rows: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = replace(matmul(100, 136, 264), m=Extent(100, "n"))
    for schedule in (TILE, replace(STAY, persistent=3)):
        check_matmul(checking_execution, GEMM, problem, schedule, leading=rows)


@pytest.mark.parametrize(
    ("problem", "stored_so"),
    [
        (LAYER, True),
        (with_residual(70, 72, 136), False),
        (matmul(70, 68, 136), False),
        (replace(LAYER, y=replace(LAYER.y, dtype=DType.FP32)), False),
        (replace(LAYER, y=replace(LAYER.y, strides=(0, 0, 1, 267))), False),
    ],
    ids=["bias", "residual", "rows of 68", "fp32", "columns apart"],
)
def test_python_and_headers_agree_on_what_is_stored_so(problem: Matmul, stored_so: bool) -> None:
    """Or the unit's shared memory would be another: a persistent block's staging is beside its stages."""
    assert stores_by_columns(problem) == stored_so
    schedule = replace(TILE, block_n=128, persistent=3)
    (source,) = GEMM.instantiate(problem, schedule)
    assert (
        f"shared_bytes = {int(costs.shared_bytes(problem, schedule.columns())[0])}" in source.text
    )
    compile_unit(source, checking=False)


FAULTS = [
    Fault(
        "columns behind the last one have operands",
        change("pair_exists", "< valid", "< valid + 64"),
    ),
    Fault("tiles of columns lie elsewhere", change("tiles_staged", "first * 16", "first * 8")),
    Fault("rows of a tile are exchanged", change("pair_given", "+ half", "+ 1 - half")),
    Fault(
        "rows behind the last one are stored", change("vector_stored", "rowEnd)", "rowEnd + 64)")
    ),
    Fault("warps store the rows of the first one", change("rows_of_warp", "warpIndex() * 16", "0")),
    Fault("warps share their staging", change("staging_of_warp", "warpIndex()", "0 * warpIndex()")),
    Fault("products store the first one's rows", change("product_placed", "product *", "0 *")),
    Fault("pieces have the first one's sums", change("sums_of_piece", "Column / 2", "0")),
    Fault("pieces are read before they are staged", drop("piece_staged")),
    Fault("pieces have the first one's operands", change("next_piece", "kNext", "0")),
]
FAULTY = replace(TURNS, block_n=128, early=0)


def test_without_a_fault_the_copied_headers_are_right(
    checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    check_matmul(checking_execution, plant(GEMM, Fault("", whole)), LAYER, FAULTY)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_seen(
    fault: Fault, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    with pytest.raises((EmulatorError, AssertionError)):
        check_matmul(checking_execution, plant(GEMM, fault), LAYER, FAULTY)


PADDED = [
    Fault(
        "padding has what comes of 0",
        change("padding_zero", "exists ? number : Number(0)", "number"),
    ),
    Fault(
        "operands behind the last one are read", change("operand_exists", "< valid", "< valid + 64")
    ),
]


@pytest.mark.parametrize("fault", PADDED, ids=lambda fault: fault.name)
def test_a_fault_of_a_padded_output_is_seen(
    fault: Fault, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    sums = apply("Add", apply("Add", Acc(), Scalar(1.0)), Operand(0))
    one_more = Epilogue(sums, (Tensor(DType.FP32, (0, 0, 0, 1)),))
    problem = replace(matmul(133, 67, 136, padding=5), epilogue=one_more)
    check_matmul(checking_execution, GEMM, problem, TILE)
    with pytest.raises((EmulatorError, AssertionError)):
        check_matmul(checking_execution, plant(GEMM, fault), problem, TILE)
