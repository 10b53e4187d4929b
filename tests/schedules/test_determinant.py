"""Determinants by elimination with row pivots, of small matrices and of the largest that are held."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant

from wpk.dtypes import DType
from wpk.errors import LaunchError
from wpk.extent import Extent
from wpk.problems import Determinant, Tensor
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

DETERMINANT = TEMPLATE_OF["determinant"]
H200 = find_target("h200")
U = 2.0**-24


def matrices(size: int, dtype: DType = DType.FP32, *, turned: bool = False) -> Determinant:
    """Three times n matrices; with the columns side by side where they are turned."""
    inner = (1, size) if turned else (size, 1)
    x = Tensor(dtype, (3 * size * size, size * size, *inner), alignment=dtype.bytes)
    return Determinant(Extent(2, "n"), (2, 3), size, x, Tensor(DType.FP32, (3, 1)))


def computed(
    execution: Any,
    problem: Determinant,
    schedule: tuple[int, int],
    x: Any,
    template: Any = DETERMINANT,
) -> Any:
    made = DETERMINANT.schedule_type(*schedule)
    assert DETERMINANT.why_illegal(problem, made, H200) is None
    memory = [execution.memory(problem.x, x)]
    return execution.run(template, problem, made, memory, x.shape[:2], {"n": len(x)})


def drawn(size: int, dtype: DType = DType.FP32, n: int = 3) -> Any:
    x = np.random.default_rng(size).standard_normal((n, 3, size, size))
    return (x / np.sqrt(max(size, 3) / 2.5)).astype(dtype.numpy)


def bound(x: Any) -> Any:
    """Of a backward error of 4 u sqrt(n) times |A| and some growth, in norm."""
    wide = x.astype(np.float64)
    off = 16 * U * x.shape[-1] * np.linalg.norm(wide, axis=(-2, -1))
    singular = np.linalg.svd(wide, compute_uv=False)
    return np.prod(singular + off[..., None], axis=-1) - np.prod(singular, axis=-1)


@pytest.mark.parametrize(
    ("size", "schedule", "dtype", "turned"),
    [
        (1, (32, 1), DType.FP32, False),
        (2, (16, 2), DType.FP16, True),
        (5, (8, 4), DType.BF16, False),
        (17, (4, 32), DType.FP32, True),
        (40, (2, 64), DType.FP32, False),
        (110, (1, 128), DType.FP16, False),
    ],
)
def test_determinants(
    size: int, schedule: tuple[int, int], dtype: DType, turned: bool, checking_execution: Any
) -> None:
    problem, x = matrices(size, dtype, turned=turned), drawn(size, dtype, 1 if size > 99 else 3)
    assert DETERMINANT.why_not(problem, H200) is None
    y = computed(checking_execution, problem, schedule, x)
    right = np.linalg.det(x.astype(np.float64))
    assert (np.abs(y - right) <= bound(x) + 4 * U * np.sqrt(size) * np.abs(right)).all()


def test_pivots_that_are_zero_and_numbers_that_are_none(fast_execution: Any) -> None:
    x = np.zeros((2, 3, 3, 3), np.float32)
    x[0, 0] = [[0, 1, 2], [3, 0, 1], [1, 1, 0]]  # needs an exchange at once
    x[0, 1] = [[1, 2, 3], [2, 4, 6], [1, 0, 1]]  # singular
    x[1, 0] = [[1, np.nan, 0], [0, 1, 0], [0, 0, 1]]
    x[1, 1] = [[np.inf, 2, 1], [3, 4, 1], [1, 1, 1]]
    x[1, 2] = np.inf
    y = computed(fast_execution, matrices(3), (16, 2), x)
    np.testing.assert_allclose(y[0], [7.0, 0.0, 0.0], atol=1e-6)
    assert np.isnan(y[1, [0, 2]]).all()
    assert np.isposinf(y[1, 1])


@pytest.mark.parametrize(
    "fault",
    [
        Fault(
            "the first row is always the pivot",
            change("largest_chosen", "value <= largest", "true"),
        ),
        Fault("signs stay", change("sign_turned", "-divisor", "divisor")),
        Fault("columns are read too early", drop("columns_eliminated")),
        Fault("rows are exchanged too early", drop("pivot_found")),
        Fault("rows are divided too early", drop("rows_exchanged")),
        Fault("columns are eliminated too early", drop("column_divided")),
    ],
    ids=lambda fault: fault.name.replace(" ", "-"),
)
def test_faults_are_found(fault: Fault, checking_execution: Any) -> None:
    x = drawn(17)
    x[:, :, 0, 0] = 1e-7  # no pivot
    right = np.linalg.det(x.astype(np.float64))
    template = plant(DETERMINANT, fault)
    try:
        y = computed(checking_execution, matrices(17), (1, 32), x, template)
    except LaunchError:
        return
    assert not (np.abs(y - right) <= bound(x)).all()


def test_refuses_in_words() -> None:
    problem = matrices(5)
    assert problem.words().startswith("determinants of n")
    large = replace(problem, size=111)
    assert "111 rows take 49284 bytes of shared memory" in str(DETERMINANT.why_not(large, H200))
    assert list(large.contradictions()) == [("size", "111 rows, at most 110 are carried")]
    integers = replace(problem, x=replace(problem.x, dtype=DType.INT32))
    assert "determinants of int32 in fp32" in str(DETERMINANT.why_not(integers, H200))
    padded = replace(problem, y=Tensor(DType.FP32, (3, 1), padding=1))
    assert "padded by 1" in str(DETERMINANT.why_not(padded, H200))
