"""Gather: rows picked by index, exactly; indices outside are seen."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.problems import Gather, Tensor
from wpk.schedules.gather import GatherTemplate
from wpk.schedules.streaming import VectorSchedule
from wpk.targets.registry import find_target

TEMPLATE = GatherTemplate()
H200 = find_target("h200")


def embedding(dtype: DType, inner: int, count: int, padding: int = 0) -> Gather:
    """Rows of a table of 11, the number of indices free."""
    row = inner + padding
    alignment = next(a for a in (16, 8, 4, 2, 1) if row * dtype.bytes % a == 0)
    data = Tensor(dtype, (0, row, 1), padding, alignment)
    y = Tensor(dtype, (0, row, 1), padding, alignment)
    index = Tensor(DType.INT64, (0, 1), alignment=8)
    return Gather(Extent(1), 11, Extent(count, "n", count), inner, data, index, y)


@pytest.mark.parametrize(
    ("dtype", "inner", "padding", "vector"),
    [(DType.FP16, 52, 4, 8), (DType.INT64, 3, 0, 1), (DType.FP32, 1, 0, 1), (DType.BF16, 30, 0, 4)],
)
def test_picks_rows_by_free_indices(
    dtype: DType, inner: int, padding: int, vector: int, execution: Any
) -> None:
    problem = embedding(dtype, inner, 7, padding)
    rng = np.random.default_rng(0)
    table = rng.integers(-100, 100, (1, 11, inner)).astype(dtype.numpy)
    index = rng.integers(-11, 11, (1, 14))
    memory = [execution.memory(problem.data, table), execution.memory(problem.index, index)]
    schedule = VectorSchedule(vector, 64)
    assert TEMPLATE.why_not(problem, H200) is None
    y = execution.run(TEMPLATE, problem, schedule, memory, (1, 14, inner), {"n": 2})
    np.testing.assert_array_equal(y, np.take(table, index[0], 1).astype(np.float64))


def test_picks_along_an_inner_axis_of_every_image(execution: Any) -> None:
    data = Tensor(DType.FP32, (5 * 6, 6, 1), alignment=8)
    y = Tensor(DType.FP32, (3 * 6, 6, 1), alignment=8)
    index = Tensor(DType.INT32, (0, 1), alignment=4)
    problem = Gather(Extent(2, "n"), 5, Extent(3), 6, data, index, y)
    x = np.random.default_rng(0).standard_normal((4, 5, 6)).astype(np.float32)
    picked = np.array([4, 0, -2], np.int32)
    memory = [execution.memory(data, x), picked]
    result = execution.run(TEMPLATE, problem, VectorSchedule(2, 64), memory, (4, 3, 6), {"n": 4})
    np.testing.assert_array_equal(result, x[:, picked].astype(np.float64))


@pytest.mark.parametrize("dtype", [DType.FP32, DType.FP16, DType.BF16, DType.INT32])
def test_an_index_outside_is_seen(dtype: DType, fast_execution: Any) -> None:
    problem = embedding(dtype, 4, 3)
    table = np.ones((1, 11, 4), dtype.numpy)
    index = np.array([[11, 0, -12]])
    memory = [fast_execution.memory(problem.data, table), index]
    y = fast_execution.run(TEMPLATE, problem, VectorSchedule(1, 64), memory, (1, 3, 4), {"n": 1})
    outside = np.nan if dtype.is_float else 0.0
    np.testing.assert_array_equal(y[0, :, 0], [outside, 1.0, outside])


def test_refuses_in_words() -> None:
    problem = embedding(DType.FP32, 4, 3)
    strange = replace(problem, index=Tensor(DType.FP32, (0, 1)))
    assert "indices are fp32" in str(TEMPLATE.why_not(strange, H200))
    assert "outer must be 1" in str(TEMPLATE.why_not(replace(problem, outer=Extent(2)), H200))
    across = replace(problem, y=Tensor(DType.FP32, (0, 1, 4), padding=1))
    assert "does not pad" in str(TEMPLATE.why_not(across, H200))
