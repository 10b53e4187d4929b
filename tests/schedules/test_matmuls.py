"""Both matrix product templates: numbers on the emulator at odd shapes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.problems.products import matmul, row_major

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import Epilogue, Tensor
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.gemm_simt import GemmSimtTemplate
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.tiles.simt import SimtSchedule

MMA, SIMT = GemmMmaTemplate(), GemmSimtTemplate()
SCHEDULE = MmaSchedule(block_m=32, block_n=64, block_k=32, warps_m=1, warps_n=2, stages=3)
SIMT_SCHEDULE = SimtSchedule(
    block_m=16, block_n=32, block_k=8, thread_m=2, thread_n=4, row_major=0, padding=0, prefetch=1
)
EACH = pytest.mark.parametrize(("template", "schedule"), [(MMA, SCHEDULE), (SIMT, SIMT_SCHEDULE)])


def _slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


CASES: dict[str, dict[str, Any]] = {
    "one row, classifier": {"m": 1, "n": 10, "k": 147, "constant": True},
    "constant": {"m": 37, "n": 72, "k": 64, "constant": True},
    "odd everything": {"m": 13, "n": 17, "k": 19, "constant": True},
    "padded output": {"m": 5, "n": 58, "k": 40, "constant": True, "y_padding": 6},
    "queries times keys": {"m": 33, "n": 33, "k": 64, "batch": (2, 3), "b_transposed": True},
    "weights times values": {"m": 33, "n": 64, "k": 40, "batch": (2, 3)},
    "weights times values, odd": {"m": 9, "n": 63, "k": 33, "batch": (1, 2)},
    "transposed a": {"m": 40, "n": 24, "k": 48, "a_transposed": True},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "precision", [Precision.FP16, Precision.FP32, _slow(Precision.BF16), Precision.TF32]
)
def test_tensor_cores_agree_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(precision=precision, **CASES[case])
    schedule = replace(SCHEDULE, block_k=64 // precision.storage.bytes)
    check_matmul(fast_execution, MMA, problem, schedule)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", [Precision.FP32, _slow(Precision.FP16)])
def test_ordinary_cores_agree_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(precision=precision, **CASES[case])
    row_major = int(precision is Precision.FP16)
    schedule = replace(SIMT_SCHEDULE, row_major=row_major, prefetch=1 - row_major)
    check_matmul(fast_execution, SIMT, problem, schedule)


@EACH
@pytest.mark.parametrize("case", CASES)
def test_integers_are_exact_under_every_check(
    case: str,
    template: Any,
    schedule: Any,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    problem = matmul(**CASES[case])
    problem = replace(problem, y=replace(problem.y, dtype=DType.FP32))
    check_matmul(checking_execution, template, problem, schedule, integers=True)


@EACH
def test_broadcasts_b_over_the_batch(
    template: Any, schedule: Any, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(20, 24, 32, batch=(3, 2))
    shared = row_major(DType.FP16, (1, 1, 32, 24))
    check_matmul(checking_execution, template, replace(problem, b=shared), schedule)


@EACH
@pytest.mark.parametrize("rows", [1, 5, 70])
def test_rows_are_decided_at_run_time(
    rows: int,
    template: Any,
    schedule: Any,
    fast_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    problem = replace(matmul(4, 24, 32, constant=True), m=Extent(4, "n"))
    check_matmul(fast_execution, template, problem, schedule, leading=rows)


@EACH
def test_the_batch_is_decided_at_run_time(
    template: Any, schedule: Any, fast_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(20, 24, 32, batch=(2, 3))
    problem = replace(problem, batch=(Extent(2, "n"), 3))
    check_matmul(fast_execution, template, problem, schedule, leading=5)


@EACH
def test_scales_and_adds_a_mask(
    template: Any, schedule: Any, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(21, 21, 32, batch=(2, 3), b_transposed=True)
    mask = Tensor(DType.FP32, (21, 0, 0, 1), alignment=4)
    tail = apply("Add", apply("Mul", Acc(), Operand(1)), Operand(0))
    scale = Tensor(DType.FP32, (0, 0, 0, 0), alignment=4)
    problem = replace(problem, epilogue=Epilogue(tail, (mask, scale)))
    check_matmul(checking_execution, template, problem, schedule)


@pytest.mark.parametrize("k", [32, 19])
def test_wider_operands_are_converted_on_the_way(
    k: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(21, 24, k)
    a = row_major(DType.FP32, (1, 1, 21, k))
    b = row_major(DType.FP32, (1, 1, k, 24))
    check_matmul(checking_execution, MMA, replace(problem, a=a, b=b), SCHEDULE)


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.TF32])
def test_narrower_operands_are_gathered_in_whole_groups(
    precision: Precision, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(21, 24, 32, precision)
    a = row_major(DType.FP16, (1, 1, 21, 32))
    b = row_major(DType.FP16, (1, 1, 32, 24), transposed=True)
    schedule = replace(SCHEDULE, block_k=16)
    check_matmul(checking_execution, MMA, replace(problem, a=a, b=b), schedule)


@pytest.mark.parametrize("dtype", [DType.FP16, DType.FP32])
def test_of_a_reduction_of_one_element_no_neighbours_are_read(
    dtype: DType, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    """Rows lie one element apart, so a vector along k would begin anywhere."""
    problem = replace(matmul(29, 24, 1, constant=True), a=Tensor(dtype, (0, 0, 1, 1)))
    check_matmul(checking_execution, MMA, problem, SCHEDULE)
