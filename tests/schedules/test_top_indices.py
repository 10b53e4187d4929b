"""Where the largest and the smallest are: every template, ties by index, as NumPy's stable sort has them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant

from wpk.dtypes import DType
from wpk.errors import LaunchError
from wpk.extent import Extent
from wpk.problems import Tensor, TopIndices
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

ARG, RANK, SORT = (TEMPLATE_OF[name] for name in ("arg_reduction", "top_by_rank", "top_by_sorting"))
H200 = find_target("h200")


def rows(dtype: DType, size: int, count: int, **changes: Any) -> TopIndices:
    """Three times n rows, contiguous."""
    x = Tensor(dtype, (3 * size, size, 1), alignment=dtype.bytes)
    y = Tensor(DType.INT64, (3 * count, count, 1), alignment=8)
    problem = TopIndices(True, False, Extent(2, "n"), (2, 3), size, count, x, y)
    return replace(problem, **changes)


def columns(size: int, count: int) -> TopIndices:
    """Along the first axis of (size, 5)."""
    x, y = Tensor(DType.FP32, (1, 5)), Tensor(DType.INT64, (1, 5))
    return TopIndices(True, False, Extent(5), (5,), size, count, x, y)


def right(problem: TopIndices, x: Any) -> Any:
    """Of x over (outer..., size): indices of a stable sort; NaN is the largest."""
    wide = x.astype(np.float64) if x.dtype.kind != "i" else x.astype(object)
    order = []
    for row in wide.reshape(-1, problem.size):
        sign = -1 if problem.largest else 1

        def key(i: int, row: Any = row, sign: int = sign) -> tuple[Any, ...]:
            nan = row[i] != row[i]
            return sign * int(nan), 0 if nan else sign * row[i], -i if problem.last else i

        order.append(sorted(range(problem.size), key=key)[: problem.count])
    return np.array(order, np.float64).reshape(*x.shape[:-1], problem.count)


def drawn(dtype: DType, shape: tuple[int, ...], seed: int) -> Any:
    """Numbers with many ties; zeros of both signs, infinities and NaN among floating point ones."""
    rng = np.random.default_rng(seed)
    if dtype is DType.INT64:
        return rng.choice([-(2**62), -(2**62) + 1, 2**62, 0, 7], shape)
    values = rng.integers(-3 if dtype.is_float or dtype is DType.INT32 else 0, 4, shape)
    found = values.astype(dtype.numpy)
    if dtype.is_float:
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape).astype(dtype.numpy)
        found = np.where(rng.random(shape) < 0.2, special, found)
    return found


SCHEDULES = [
    (ARG, {"outputs": 4, "splits": 8}), (ARG, {"outputs": 32, "splits": 1}),
    (ARG, {"outputs": 1, "splits": 64}), (RANK, {"vector": 1, "threads": 64}),
    (SORT, {"kept": 32, "threads": 32}), (SORT, {"kept": 64, "threads": 32}),
]  # fmt: skip


@pytest.mark.parametrize(("template", "schedule"), SCHEDULES)
@pytest.mark.parametrize("dtype", [DType.FP32, DType.FP16, DType.BF16, DType.INT64, DType.UINT8])
@pytest.mark.parametrize(("largest", "last"), [(True, False), (False, True)])
def test_ties_go_by_index(
    template: Any, schedule: Any, dtype: DType, largest: bool, last: bool, fast_execution: Any
) -> None:
    count = 1 if template is ARG else 13
    problem = rows(dtype, 150, count, largest=largest, last=last)
    x = drawn(dtype, (4, 3, 150), 1)
    assert template.why_not(problem, H200) is None
    made = template.schedule_type(**schedule)
    assert template.why_illegal(problem, made, H200) is None
    y = fast_execution.run(template, problem, made, [x.reshape(-1)], (4, 3, count), {"n": 4})
    np.testing.assert_array_equal(y, right(problem, x))


@pytest.mark.parametrize(("template", "schedule"), SCHEDULES)
@pytest.mark.parametrize("size", [1, 2, 31, 97])
def test_columns_of_odd_lengths(
    template: Any, schedule: Any, size: int, checking_execution: Any
) -> None:
    problem = columns(size, 1 if template is ARG else min(size, 9))
    x = np.random.default_rng(size).standard_normal((size, 5)).astype(np.float32)
    y = checking_execution.run(
        template, problem, template.schedule_type(**schedule), [x.reshape(-1)], (5, problem.count)
    )
    np.testing.assert_array_equal(y, right(problem, np.ascontiguousarray(x.T)))


@pytest.mark.parametrize(("template", "schedule", "fault"), [
    (ARG, {"outputs": 4, "splits": 8},
        Fault("a row is read beyond its end", change("share_ends", "size", "size + 1"))),
    (RANK, {"vector": 1, "threads": 64},
        Fault("others are written, too", drop("others_are_left_out"))),
    (SORT, {"kept": 64, "threads": 64},
        Fault("a row is read beyond its end", change("row_ends", "size", "size + 1"))),
])  # fmt: skip
def test_what_leaves_a_row_is_found(
    template: Any, schedule: Any, fault: Fault, checking_execution: Any
) -> None:
    problem = rows(DType.FP32, 40, 1)
    x = np.arange(2.0 * 3 * 40, dtype=np.float32).reshape(2, 3, 40)
    made, shape = template.schedule_type(**schedule), (2, 3, 1)
    with pytest.raises(LaunchError):
        checking_execution.run(
            plant(template, fault), problem, made, [x.reshape(-1)], shape, {"n": 2}
        )


def test_sorting_keeps_no_more_than_shared_memory_holds() -> None:
    assert SORT.why_not(rows(DType.FP32, 5000, 2048), H200) is None
    assert "at most 2048 are sorted" in str(SORT.why_not(rows(DType.FP32, 5000, 2049), H200))
    assert SORT.why_not(rows(DType.INT64, 5000, 1024), H200) is None
    assert "at most 1024 are sorted" in str(SORT.why_not(rows(DType.INT64, 5000, 1025), H200))
    for problem in (rows(DType.FP32, 5000, 2048), rows(DType.INT64, 5000, 1024)):
        _, legal = SORT.space(problem, H200)
        assert set(legal["kept"]) == {problem.count}


def test_refuses_in_words() -> None:
    assert "asks for 2" in str(ARG.why_not(rows(DType.FP32, 9, 2), H200))
    assert "32768 are carried" in str(RANK.why_not(rows(DType.FP32, 32769, 2), H200))
    padded = rows(DType.FP32, 9, 2, y=Tensor(DType.INT64, (12, 4, 1), padding=2))
    assert "padded by 2" in str(RANK.why_not(padded, H200))
    deep = rows(DType.FP32, 9, 1, outer=(2, 1, 1, 1, 3))
    assert "5 outer axes" in str(ARG.why_not(deep, H200))


@pytest.mark.parametrize(("template", "schedule", "point"), [
    (ARG, {"outputs": 4, "splits": 8}, "shares_written"),
    (SORT, {"kept": 64, "threads": 64}, "pairs_written"),
    (SORT, {"kept": 32, "threads": 32}, "rest_is_over"),
    (SORT, {"kept": 64, "threads": 64}, "sorted"),
])  # fmt: skip
def test_a_missing_barrier_is_found(
    template: Any, schedule: Any, point: str, checking_execution: Any
) -> None:
    problem = rows(DType.FP32, 150, 64 if template is SORT and point == "sorted" else 1)
    faulty = plant(template, Fault("a barrier is missing", drop(point)))
    x = np.random.default_rng(0).standard_normal((2, 3, 150)).astype(np.float32)
    made, shape = template.schedule_type(**schedule), (2, 3, problem.count)
    try:
        y = checking_execution.run(faulty, problem, made, [x.reshape(-1)], shape, {"n": 2})
    except LaunchError:
        return
    assert (y != right(problem, x)).any()
