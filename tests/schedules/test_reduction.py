"""Reductions: numbers in float64 at odd shapes, both walks, refusals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import Epilogue, Reduction, Tensor
from wpk.problems.reduction import ReduceKind
from wpk.schedules.reduction import ReductionSchedule, ReductionTemplate
from wpk.targets.registry import find_target

TEMPLATE = ReductionTemplate()
H200 = find_target("h200")
N = 3
NUMPY: dict[ReduceKind, Callable[..., Any]] = {
    ReduceKind.SUM: np.sum,
    ReduceKind.MEAN: np.mean,
    ReduceKind.MAX: np.max,
    ReduceKind.MIN: np.min,
    ReduceKind.PROD: np.prod,
}


def pooled(dtype: DType, c: int, padding: int, kind: ReduceKind = ReduceKind.MEAN) -> Reduction:
    """Global pooling of a channels-last image of 5 x 7."""
    pixel = c + padding
    alignment = next(a for a in (16, 8, 4, 2) if pixel * dtype.bytes % a == 0)
    x = Tensor(dtype, (35 * pixel, 1, 7 * pixel, pixel), padding, alignment)
    y = Tensor(dtype, (pixel, 1), padding, alignment)
    return Reduction(kind, Extent(2, "n"), (2, c), (5, 7), Operand(0), (x,), y, Epilogue())


def rows(dtype: DType, outer: int, cols: int, kind: ReduceKind) -> Reduction:
    """Reduction of the last axis."""
    alignment = next(a for a in (16, 8, 4, 2) if cols * dtype.bytes % a == 0)
    x = Tensor(dtype, (outer * cols, cols, 1), alignment=alignment)
    y = Tensor(DType.FP32, (outer, 1), alignment=4)
    return Reduction(kind, Extent(2, "n"), (2, outer), (cols,), Operand(0), (x,), y, Epilogue())


def check(
    execution: Any, assert_close: Callable[..., None], problem: Reduction, schedule: Any
) -> None:
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    shape = (N, *problem.outer[1:], *problem.inner)
    x = np.random.default_rng(0).uniform(-1.5, 1.5, shape).astype(problem.inputs[0].dtype.numpy)
    memory = [execution.memory(problem.inputs[0], x)]
    outer = (N, *problem.outer[1:])
    y = execution.run(TEMPLATE, problem, schedule, memory, outer, {"n": N})
    axes = tuple(range(len(outer), len(shape)))
    exact = x.astype(np.float64)
    expected = NUMPY[problem.kind](exact, axis=axes)
    magnitude = np.abs(exact).sum(axes)
    if problem.kind is ReduceKind.PROD:
        magnitude = np.abs(expected) * problem.reduction
    elif problem.kind is ReduceKind.MEAN:
        magnitude /= problem.reduction
    out, count = problem.y.dtype.unit_roundoff, problem.reduction
    assert_close(y, expected, magnitude, out=out, multiply=0.0, reduction=count)


@pytest.mark.parametrize(
    ("dtype", "c", "padding", "schedule"),
    [
        (DType.FP16, 58, 6, ReductionSchedule(8, 8, 8)),
        (DType.FP32, 61, 0, ReductionSchedule(1, 32, 4)),
        (DType.BF16, 130, 0, ReductionSchedule(2, 32, 1)),
    ],
)
def test_global_average_of_channels_last(
    dtype: DType,
    c: int,
    padding: int,
    schedule: ReductionSchedule,
    execution: Any,
    assert_close: Callable[..., None],
) -> None:
    check(execution, assert_close, pooled(dtype, c, padding), schedule)


@pytest.mark.parametrize("kind", ReduceKind)
def test_every_kind_along_rows(
    kind: ReduceKind, fast_execution: Any, assert_close: Callable[..., None]
) -> None:
    problem = rows(DType.FP32, 5, 37, kind)
    check(fast_execution, assert_close, problem, ReductionSchedule(4, 4, 8))


@pytest.mark.parametrize(
    "schedule",
    [
        ReductionSchedule(4, 1, 128),
        ReductionSchedule(2, 32, 1),
        ReductionSchedule(4, 1, 32),
        ReductionSchedule(1, 2, 256),
    ],
)
def test_every_split_of_long_rows(
    schedule: ReductionSchedule, execution: Any, assert_close: Callable[..., None]
) -> None:
    check(execution, assert_close, rows(DType.FP32, 3, 1004, ReduceKind.SUM), schedule)


def test_three_inner_axes_and_expressions_around(execution: Any) -> None:
    a = Tensor(DType.FP16, (120, 60, 12, 4, 1), alignment=8)
    b = Tensor(DType.FP32, (0, 1, 0, 2, 0), alignment=4)
    scale = Tensor(DType.FP32, (0, 1), alignment=4)
    problem = Reduction(
        ReduceKind.SUM,
        Extent(2),
        (2, 2),
        (5, 3, 4),
        apply("Mul", Operand(0), Operand(1)),
        (a, b),
        Tensor(DType.FP32, (2, 1), alignment=4),
        Epilogue(apply("Sqrt", apply("Abs", apply("Mul", Acc(), Operand(0)))), (scale,)),
    )
    assert TEMPLATE.why_not(problem, H200) is None
    rng = np.random.default_rng(3)
    x = rng.integers(-4, 5, (N, 2, 5, 3, 4)).astype(np.float16)
    y = rng.integers(-4, 5, (1, 2, 1, 3, 1)).astype(np.float32)
    s = np.array([4.0, 9.0], np.float32)
    whole = np.broadcast_to(y, x.shape)
    memory = [execution.memory(a, x), execution.memory(b, whole), s]
    result = execution.run(
        TEMPLATE, replace(problem, leading=Extent(N)), ReductionSchedule(4, 8, 4), memory, (N, 2)
    )
    expected = np.sqrt(np.abs((x.astype(np.float64) * y).sum((2, 3, 4)) * s))
    np.testing.assert_allclose(result, expected, rtol=2.0**-22)


@pytest.mark.parametrize("kind", [ReduceKind.MAX, ReduceKind.MIN])
def test_extremes_hand_a_nan_on_and_keep_infinities(kind: ReduceKind, fast_execution: Any) -> None:
    problem = rows(DType.FP32, 3, 64, kind)
    x = np.random.default_rng(0).standard_normal((1, 3, 64))
    x[0, 0, 40] = np.nan
    x[0, 1] = -np.inf if kind is ReduceKind.MAX else np.inf
    memory = [fast_execution.memory(problem.inputs[0], x)]
    y = fast_execution.run(TEMPLATE, problem, ReductionSchedule(4, 2, 16), memory, (1, 3), {"n": 1})
    np.testing.assert_array_equal(y, NUMPY[kind](x.astype(np.float32), axis=2))


def test_neighbouring_threads_read_neighbouring_channels() -> None:
    kernel = TEMPLATE.kernel(pooled(DType.FP16, 64, 0), ReductionSchedule(8, 8, 4))
    assert kernel.members["alongOuter"]
    assert kernel.members["Inputs"].text.endswith("448, 64, 1>>")
    along_rows = TEMPLATE.kernel(
        rows(DType.FP16, 3, 64, ReduceKind.SUM), ReductionSchedule(8, 8, 4)
    )
    assert not along_rows.members["alongOuter"]


@pytest.mark.parametrize("leading", [Extent(61), Extent(2 * 61, "n", 61)])
def test_channels_that_are_the_leading_axis_are_walked(
    leading: Extent, execution: Any, assert_close: Callable[..., None]
) -> None:
    count = leading.value
    x_tensor, y_tensor = Tensor(DType.FP32, (1, count), alignment=4), Tensor(DType.FP32, (1,))
    problem = Reduction(
        ReduceKind.MEAN, leading, (count,), (35,), Operand(0), (x_tensor,), y_tensor, Epilogue()
    )
    schedule = ReductionSchedule(1, 32, 4)
    assert TEMPLATE.kernel(problem, schedule).members["alongOuter"]
    x = np.random.default_rng(0).standard_normal((count, 35)).astype(np.float32)
    memory = [execution.memory(x_tensor, x)]
    y = execution.run(TEMPLATE, problem, schedule, memory, (count,), {"n": 2})
    magnitude = np.abs(x.astype(np.float64)).mean(1)
    expected = x.astype(np.float64).mean(1)
    assert_close(y, expected, magnitude, out=2.0**-24, multiply=0.0, reduction=35)


def test_refuses_in_words() -> None:
    good = rows(DType.FP32, 3, 64, ReduceKind.SUM)
    many = replace(good, outer=(2, 1, 1, 1, 1))
    assert "5 outer and 1 inner axes" in str(TEMPLATE.why_not(many, H200))
    assert "an inner axis is empty" in str(TEMPLATE.why_not(replace(good, inner=(0,)), H200))
    lost = replace(good, prologue=Operand(2))
    assert "prologue reads operand 2" in str(TEMPLATE.why_not(lost, H200))
    across = replace(good, y=Tensor(DType.FP32, (1, 4), padding=1))
    assert "does not pad" in str(TEMPLATE.why_not(across, H200))
    words = TEMPLATE.why_illegal(good, ReductionSchedule(1, 2, 4), H200)
    assert words == "a block has whole warps (outputs=2, splits=4)"
    words = TEMPLATE.why_illegal(good, ReductionSchedule(1, 1, 256), H200)
    assert words == "threads share the 64 elements of an output (splits=256)"
    words = TEMPLATE.why_illegal(replace(good, inner=(4096,)), ReductionSchedule(1, 64, 32), H200)
    seen = "(outputs=64, splits=32)"
    assert words == f"a block of the target has at most 1024 threads {seen}"
