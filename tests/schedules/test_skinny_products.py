"""Products of few rows on the emulator: every layout, odd sizes, splits, batches and epilogues; and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.problems.products import matmul, row_major

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, In, Operand, apply
from wpk.extent import Extent
from wpk.problems import Epilogue, Tensor
from wpk.schedules.gemm_skinny import GemmSkinnyTemplate, SkinnySchedule

SKINNY = GemmSkinnyTemplate()
ALONG = SkinnySchedule(block_m=2, thread_n=2, threads_k=16, threads_n=4, depth=2, prefetch=1)
ACROSS = SkinnySchedule(block_m=2, thread_n=8, threads_k=8, threads_n=8, depth=4, prefetch=1)

# Problem, and the schedule: rows above and below a block's, reductions with and without a rest, columns that no block
# divides; lanes of a part of a warp, of a warp, and several warps that share a column.
CASES: dict[str, tuple[dict[str, Any], SkinnySchedule]] = {
    "a vector": ({"m": 1, "n": 10, "k": 147, "constant": True}, replace(ALONG, block_m=1)),
    "whole steps": ({"m": 2, "n": 16, "k": 512, "constant": True}, replace(ALONG, prefetch=0)),
    "odd everything": ({"m": 3, "n": 17, "k": 19, "constant": True}, ALONG),
    "padded output": ({"m": 8, "n": 58, "k": 40, "constant": True, "y_padding": 6}, ALONG),
    "a warp a column": (
        {"m": 5, "n": 9, "k": 600, "constant": True},
        replace(ALONG, block_m=8, thread_n=1, threads_k=32, threads_n=2, depth=1),
    ),
    "warps share columns": (
        {"m": 8, "n": 7, "k": 1100, "constant": True},
        replace(ALONG, block_m=8, thread_n=8, threads_k=64, threads_n=1, depth=1),
    ),
    "one column a thread, all lanes alike": (
        {"m": 1, "n": 5, "k": 96, "constant": True},
        replace(ALONG, block_m=1, thread_n=1, threads_k=64, threads_n=1),
    ),
    "queries times keys": (
        {"m": 3, "n": 33, "k": 64, "batch": (2, 3), "b_transposed": True},
        ALONG,
    ),
    "queries times keys, odd": (
        {"m": 2, "n": 21, "k": 37, "batch": (1, 3), "b_transposed": True},
        replace(ALONG, prefetch=0),
    ),
    "weights times values": ({"m": 3, "n": 64, "k": 40, "batch": (2, 3)}, ACROSS),
    "weights times values, few columns": ({"m": 1, "n": 24, "k": 90}, replace(ACROSS, block_m=1)),
    "transposed a": ({"m": 4, "n": 24, "k": 48, "a_transposed": True}, ACROSS),
}
NARROW: dict[str, dict[str, Any]] = {
    "odd rows of b": {"m": 2, "n": 63, "k": 33, "batch": (1, 2)},
    "one column": {"m": 2, "n": 1, "k": 33},
}


def _of(precision: Precision, case: str) -> tuple[Any, SkinnySchedule]:
    sizes, schedule = CASES[case]
    if schedule.thread_n == ACROSS.thread_n and not sizes.get("constant"):
        schedule = replace(schedule, thread_n=16 // precision.storage.bytes)
    return matmul(precision=precision, **sizes), schedule


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "precision",
    [
        Precision.FP16,
        Precision.FP32,
        pytest.param(Precision.BF16, marks=pytest.mark.slow),
        pytest.param(Precision.TF32, marks=pytest.mark.slow),
    ],
)
def test_agrees_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_matmul: Callable[..., None]
) -> None:
    check_matmul(fast_execution, SKINNY, *_of(precision, case))


@pytest.mark.parametrize("case", CASES)
def test_integers_are_exact_under_every_check(
    case: str, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem, schedule = _of(Precision.FP16, case)
    problem = replace(problem, y=replace(problem.y, dtype=DType.FP32))
    check_matmul(checking_execution, SKINNY, problem, replace(schedule, early=1), integers=True)


@pytest.mark.parametrize("case", NARROW)
def test_neighbours_that_no_access_moves_together_come_one_by_one(
    case: str, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    schedule = replace(ACROSS, thread_n=1, prefetch=0)
    check_matmul(checking_execution, SKINNY, matmul(**NARROW[case]), schedule)


@pytest.mark.parametrize(
    ("constant", "schedule"),
    [
        (True, ALONG),
        (True, replace(ALONG, thread_n=8, threads_k=64, threads_n=1, depth=1)),
        (False, ACROSS),
    ],
)
def test_blocks_share_a_reduction(
    constant: bool,
    schedule: SkinnySchedule,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    problem = matmul(3, 19 if constant else 24, 1100, constant=constant)
    check_matmul(checking_execution, SKINNY, problem, replace(schedule, split=3))


@pytest.mark.parametrize("rows", [1, 5, 19])
def test_rows_are_decided_at_run_time(
    rows: int, fast_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = replace(matmul(4, 24, 32, constant=True), m=Extent(4, "n"))
    check_matmul(fast_execution, SKINNY, problem, ALONG, leading=rows)


def test_the_batch_is_decided_at_run_time(
    fast_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = replace(matmul(2, 24, 32, batch=(2, 3)), batch=(Extent(2, "n"), 3))
    check_matmul(fast_execution, SKINNY, problem, ACROSS, leading=5)


def test_broadcasts_b_over_the_batch(
    checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    shared = row_major(DType.FP16, (1, 1, 32, 24))
    problem = replace(matmul(3, 24, 32, batch=(3, 2)), b=shared)
    check_matmul(checking_execution, SKINNY, problem, ACROSS)


# Operands of every kind: a number, one a column, one a row, one an element.
OPERANDS = {
    "numbers": (0, 0, 0, 0),
    "columns": (0, 0, 0, 1),
    "rows": (9, 3, 1, 0),
    "elements": (189, 63, 21, 1),
}


@pytest.mark.parametrize("early", [0, 1])
def test_scales_adds_and_activates(
    early: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(3, 21, 32, batch=(2, 3), b_transposed=True)
    tail = apply("Relu", apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1)))
    tail = apply("Add", apply("Mul", tail, Operand(2)), Operand(3))
    kinds = (Tensor(DType.FP32, strides, alignment=4) for strides in OPERANDS.values())
    problem = replace(problem, epilogue=Epilogue(tail, tuple(kinds)))
    check_matmul(checking_execution, SKINNY, problem, replace(ALONG, early=early))


def test_a_wider_row_is_read_as_it_lies(
    checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = replace(matmul(3, 24, 72, constant=True), a=row_major(DType.FP32, (1, 1, 3, 72)))
    check_matmul(checking_execution, SKINNY, problem, ALONG)


def test_double_is_multiplied_in_double(
    checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    tail = Epilogue(In(DType.FP64, apply("Relu", Acc())))
    problem = replace(matmul(3, 9, 137, Precision.FP64, constant=True), epilogue=tail)
    check_matmul(checking_execution, SKINNY, problem, replace(ALONG, split=2), integers=True)
