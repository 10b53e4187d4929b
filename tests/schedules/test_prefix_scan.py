"""Running sums and products: every direction, chunk by chunk, in fp32 or exactly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant

from wpk.dtypes import DType
from wpk.errors import LaunchError
from wpk.extent import Extent
from wpk.problems import PrefixScan, ScanKind, Tensor
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

SCAN = TEMPLATE_OF["prefix_scan"]
H200 = find_target("h200")


def rows(dtype: DType, size: int, kind: ScanKind = ScanKind.SUM, **changes: Any) -> PrefixScan:
    """Three times n rows, contiguous."""
    x = Tensor(dtype, (3 * size, size, 1), alignment=dtype.bytes)
    problem = PrefixScan(kind, False, False, Extent(2, "n"), (2, 3), size, x, x)
    return replace(problem, **changes)


def right(problem: PrefixScan, x: Any) -> Any:
    """Along the last axis, in float64 or exactly."""
    wide = x.astype(np.float64) if problem.x.dtype.is_float else x
    wide = wide[..., ::-1] if problem.reverse else wide
    product = problem.kind is ScanKind.PROD
    y = (np.cumprod if product else np.cumsum)(wide, axis=-1, dtype=wide.dtype)
    if problem.exclusive:
        y = np.concatenate([np.full_like(y[..., :1], product), y[..., :-1]], axis=-1)
    return y[..., ::-1] if problem.reverse else y


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("schedule", [(1, 32), (32, 1), (4, 16)])
def test_sums_run_in_both_directions(
    exclusive: bool, reverse: bool, schedule: tuple[int, int], checking_execution: Any
) -> None:
    problem = rows(DType.FP32, 77, exclusive=exclusive, reverse=reverse)
    x = np.random.default_rng(0).standard_normal((4, 3, 77)).astype(np.float32)
    made = SCAN.schedule_type(*schedule)
    assert SCAN.why_illegal(problem, made, H200) is None
    y = checking_execution.run(SCAN, problem, made, [x.reshape(-1)], x.shape, {"n": 4})
    # Each sum of at most 77 terms, in any order: Higham, eq. 3.5.
    bound = 77 * 2.0**-24 * right(problem, np.abs(x))
    assert (np.abs(y - right(problem, x)) <= bound).all()


@pytest.mark.parametrize("dtype", [DType.INT64, DType.INT32, DType.INT8, DType.UINT8])
@pytest.mark.parametrize("kind", list(ScanKind))
def test_integers_are_exact_and_keep_their_lowest_bits(
    dtype: DType, kind: ScanKind, fast_execution: Any
) -> None:
    problem = rows(dtype, 45, kind)
    limits = np.iinfo(dtype.numpy)
    x = np.random.default_rng(1).integers(limits.min // 2**9, limits.max // 2**9 + 3, (2, 3, 45))
    x = x.astype(dtype.numpy)
    with np.errstate(over="ignore"):
        expected = right(problem, x)
    made = SCAN.schedule_type(2, 16)
    y = fast_execution.run(SCAN, problem, made, [x.reshape(-1)], x.shape, {"n": 2})
    np.testing.assert_array_equal(y, expected.astype(np.float64))


@pytest.mark.parametrize("schedule", [(32, 1), (8, 8)])
def test_columns(schedule: tuple[int, int], checking_execution: Any) -> None:
    x = Tensor(DType.FP16, (1, 5), alignment=2)
    problem = PrefixScan(ScanKind.PROD, False, False, Extent(5), (5,), 20, x, x)
    values = np.random.default_rng(2).uniform(0.5, 1.5, (20, 5)).astype(np.float16)
    made = SCAN.schedule_type(*schedule)
    y = checking_execution.run(SCAN, problem, made, [values.reshape(-1)], (5, 20))
    np.testing.assert_allclose(y, right(problem, values.T), rtol=2.0**-11 * 1.01)


@pytest.mark.parametrize("point", ["chunk_is_over", "values_written", "values_read", "scanned"])
def test_a_missing_barrier_is_found(point: str, checking_execution: Any) -> None:
    problem = rows(DType.FP32, 77)
    faulty = plant(SCAN, Fault("a barrier is missing", drop(point)))
    x = np.arange(2.0 * 3 * 77, dtype=np.float32).reshape(2, 3, 77)
    made = SCAN.schedule_type(1, 64)
    try:
        y = checking_execution.run(faulty, problem, made, [x.reshape(-1)], x.shape, {"n": 2})
    except LaunchError:
        return
    assert (np.abs(y - right(problem, x)) > 1e-3 * right(problem, x)).any()


def test_a_row_read_beyond_its_end_is_found(checking_execution: Any) -> None:
    problem, schedule = rows(DType.FP32, 80), SCAN.schedule_type(1, 64)
    faulty = plant(SCAN, Fault("one element more", change("row_ends", "size", "size + 1")))
    x = np.ones((2, 3, 80), np.float32)
    with pytest.raises(LaunchError):
        checking_execution.run(faulty, problem, schedule, [x.reshape(-1)], x.shape, {"n": 2})


def test_refuses_in_words() -> None:
    problem = rows(DType.FP32, 9)
    mixed = replace(problem, y=replace(problem.y, dtype=DType.FP16))
    assert "sums of fp32 in fp16" in str(SCAN.why_not(mixed, H200))
    padded = replace(problem, y=Tensor(DType.FP32, (36, 12, 1), padding=3))
    assert "padded by 3" in str(SCAN.why_not(padded, H200))
