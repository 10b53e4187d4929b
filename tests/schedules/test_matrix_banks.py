"""The shared loads that templates describe are those that the emulator sees, conflicts included."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import matmul

from wpk.dtypes import DType, Precision
from wpk.performance.bank_conflicts import passes, phases
from wpk.problems import Matmul, Tensor
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.gemm_simt import GemmSimtTemplate
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.tiles.simt import SimtSchedule

MMA = [
    MmaSchedule(64, 64, 32, 2, 2, 2),
    MmaSchedule(64, 64, 64, 1, 2, 3),
    MmaSchedule(64, 64, 16, 4, 1, 4),
]
SIMT = [
    SimtSchedule(64, 64, 8, 8, 4, row_major=1, padding=4, prefetch=1),
    SimtSchedule(64, 64, 16, 4, 4, row_major=1, padding=0, prefetch=0),
    SimtSchedule(64, 64, 16, 2, 8, row_major=0, padding=0, prefetch=1),
    SimtSchedule(32, 64, 8, 4, 2, row_major=0, padding=4, prefetch=1),
]


def square(precision: Precision, b_transposed: bool = False) -> Matmul:
    plain = matmul(64, 64, 64, precision=precision, constant=False)
    return replace(plain, b=Tensor(plain.b.dtype, (0, 0, 1, 64))) if b_transposed else plain


def predicted(accesses: Any, warps: int, steps: int) -> tuple[int, int]:
    """Phases, and passes that conflicts add, of all warps in all steps."""
    least = extra = 0
    for access in accesses:
        taken = int(passes(np.asarray([access.addresses], np.int64), access.bytes)[0])
        least += access.count * phases(access.bytes)
        extra += access.count * (taken - phases(access.bytes))
    return least * warps * steps, extra * warps * steps


@pytest.mark.parametrize("schedule", MMA, ids=str)
@pytest.mark.parametrize("b_transposed", [False, True], ids=["across", "along"])
def test_matrix_loads_are_free_of_conflicts(
    schedule: MmaSchedule,
    b_transposed: bool,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    template, problem = GemmMmaTemplate(), square(Precision.FP16, b_transposed)
    check_matmul(checking_execution, template, problem, schedule)
    accesses = template.shared_accesses(problem, schedule)
    expected = predicted(accesses, schedule.threads // 32, 64 // schedule.block_k)
    seen = checking_execution.statistics
    assert (seen.phases["matrix_load"], seen.conflicts["matrix_load"]) == expected
    assert expected[1] == 0


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.TF32])
def test_sums_are_staged_without_conflicts(
    precision: Precision, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    """By warps of 64 columns; of narrower ones, lanes that read together are in several rows."""
    schedule = MmaSchedule(64, 64, 16, 4, 1, 4)
    check_matmul(checking_execution, GemmMmaTemplate(), square(precision), schedule)
    seen = checking_execution.statistics
    assert seen.phases["store"] > 0
    assert (seen.conflicts["load"], seen.conflicts["store"]) == (0, 0)


@pytest.mark.parametrize("schedule", SIMT, ids=str)
def test_conflicts_of_plain_loads_are_counted_alike(
    schedule: SimtSchedule, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    template, problem = GemmSimtTemplate(), square(Precision.FP32, b_transposed=True)
    assert problem.y.dtype is DType.FP32
    check_matmul(checking_execution, template, problem, schedule)
    blocks = 64 // schedule.block_m
    accesses = template.shared_accesses(problem, schedule)
    expected = predicted(accesses, schedule.threads // 32 * blocks, 64 // schedule.block_k)
    seen = checking_execution.statistics
    assert (seen.phases["load"], seen.conflicts["load"]) == expected
