"""Elements read and written where an index tensor says, exactly; indices outside reach no memory."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant

from wpk.dtypes import DType
from wpk.errors import LaunchError
from wpk.extent import Extent
from wpk.problems import Advance, IndexedRead, IndexedWrite, Tensor, WriteKind
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.streaming import VectorSchedule
from wpk.targets.registry import find_target

READ, WRITE = TEMPLATE_OF["indexed_read"], TEMPLATE_OF["indexed_write"]
H200 = find_target("h200")


def index_of(*strides: int, dtype: DType = DType.INT64) -> Tensor:
    return Tensor(dtype, strides, alignment=dtype.bytes)


def by_element(dtype: DType) -> IndexedRead:
    """GatherElements along the middle of (n, 5, 6), three indices each."""
    data = Tensor(dtype, (30, 0, 1, 6), alignment=dtype.bytes)
    y = Tensor(dtype, (18, 6, 1), alignment=dtype.bytes)
    return IndexedRead(Extent(2, "n"), (2, 3, 6), (5,), data, index_of(18, 6, 1, 0), y)


def by_tuple(inner: int, padding: int = 0) -> IndexedRead:
    """GatherND of seven rows of (4, 3, inner) by pairs."""
    row = inner + padding
    alignment = 16 if row * 4 % 16 == 0 else 4
    data = Tensor(DType.FP32, (0, 0, 1, 3 * row, row), 0, alignment)
    y = Tensor(DType.FP32, (7 * row, row, 1), padding, alignment)
    return IndexedRead(Extent(1), (1, 7, inner), (4, 3), data, index_of(0, 2, 0, 1), y)


@pytest.mark.parametrize("dtype", [DType.FP32, DType.FP16, DType.INT64, DType.UINT8, DType.BOOL])
@pytest.mark.parametrize("vector", [1, 4])
def test_reads_each_element_by_its_own_index(dtype: DType, vector: int, execution: Any) -> None:
    rng, problem = np.random.default_rng(0), by_element(dtype)
    x = rng.integers(0, 2 if dtype is DType.BOOL else 100, (4, 5, 6)).astype(dtype.numpy)
    index = rng.integers(-5, 5, (4, 3, 6))
    assert READ.why_not(problem, H200) is None
    memory = [x.reshape(-1), index.reshape(-1)]
    y = execution.run(READ, problem, VectorSchedule(vector, 64), memory, (4, 3, 6), {"n": 4})
    np.testing.assert_array_equal(y, np.take_along_axis(x, index, 1).astype(np.float64))


@pytest.mark.parametrize(
    ("inner", "padding", "vector"), [(8, 0, 4), (6, 2, 4), (5, 0, 1), (5, 3, 2)]
)
def test_reads_rows_by_tuples(inner: int, padding: int, vector: int, execution: Any) -> None:
    rng, problem = np.random.default_rng(1), by_tuple(inner, padding)
    x = rng.standard_normal((4, 3, inner)).astype(np.float32)
    index = np.stack([rng.integers(-4, 4, 7), rng.integers(-3, 3, 7)], 1)
    table = execution.memory(
        Tensor(DType.FP32, (3 * (inner + padding), inner + padding, 1), padding), x
    )
    memory = [table, index.reshape(-1)]
    y = execution.run(READ, problem, VectorSchedule(vector, 64), memory, (1, 7, inner))
    np.testing.assert_array_equal(y[0], x[index[:, 0], index[:, 1]].astype(np.float64))


@pytest.mark.parametrize("dtype", [DType.FP32, DType.BF16, DType.INT32])
def test_an_index_outside_is_seen_and_reads_nothing(dtype: DType, checking_execution: Any) -> None:
    problem = by_element(dtype)
    index = np.zeros((2, 3, 6), np.int64)
    index[0, 0] = [5, -6, 2**40, -(2**62), 4, -5]
    memory = [np.ones(60, dtype.numpy), index.reshape(-1)]
    y = checking_execution.run(READ, problem, VectorSchedule(1, 64), memory, (2, 3, 6), {"n": 2})
    outside = np.nan if dtype.is_float else 0.0
    np.testing.assert_array_equal(y[0, 0], [outside] * 4 + [1.0, 1.0])
    assert (y[1] == 1).all()


def test_an_index_outside_would_be_found(checking_execution: Any) -> None:
    faulty = plant(READ, Fault("indices are not looked at", drop("index_inside")))
    memory = [np.ones(60, np.float32), np.full(36, 2**44)]  # no process has memory there
    with pytest.raises(LaunchError):
        checking_execution.run(
            faulty, by_element(DType.FP32), VectorSchedule(1, 64), memory, (2, 3, 6), {"n": 2}
        )


_ROW_ENDS = Fault("the end of a row is not looked at", change("row_ends", "v >=", "false &&"))


def test_a_row_of_indices_read_beyond_its_end_is_found(checking_execution: Any) -> None:
    """The last vector of a row of 6, four to a vector, holds two."""
    y = Tensor(DType.FP32, (24, 8, 1), padding=2)
    problem = replace(by_element(DType.FP32), y=y)
    memory = [np.ones(60, np.float32), np.zeros(36, np.int64)]
    with pytest.raises(LaunchError):
        checking_execution.run(
            plant(READ, _ROW_ENDS), problem, VectorSchedule(4, 64), memory, (2, 3, 6), {"n": 2}
        )


def test_a_row_of_updates_read_beyond_its_end_is_found(checking_execution: Any) -> None:
    problem = written(WriteKind.NONE, DType.FP16, shared=False, inner=6, padding=2)
    memory = [
        checking_execution.memory(problem.data, np.zeros((2, 2, 7, 6), np.float16)),
        np.zeros(2 * 2 * 5 * 6, np.int64),
        np.ones(2 * 2 * 5 * 6, np.float16),
    ]
    with pytest.raises(LaunchError):
        checking_execution.run(
            plant(WRITE, _ROW_ENDS), problem, VectorSchedule(4, 64), memory, (2, 2, 7, 6), {"n": 2}
        )


def written(kind: WriteKind, dtype: DType, *, shared: bool, inner: int, padding: int = 0) -> Any:
    """Five updates into seven places, twice of n."""
    row = inner + padding
    alignment = next(a for a in (16, 8, 4, 2, 1) if row * dtype.bytes % a == 0)
    whole = Tensor(dtype, (2 * 7 * row, 7 * row, row, 1), padding, alignment)
    updates = Tensor(dtype, (2 * 5 * inner, 5 * inner, inner, 1), alignment=dtype.bytes)
    index = index_of(10, 5, 1, 0, 0) if shared else index_of(10 * inner, 5 * inner, inner, 1, 0)
    return IndexedWrite(
        *(
            kind,
            Extent(2, "n"),
            (2, 2),
            (7,),
            5,
            inner,
            False,
            Advance.NONE,
            whole,
            index,
            updates,
            whole,
        )
    )


def expected(kind: WriteKind, x: Any, index: Any, updates: Any) -> Any:
    y, (n, other, count, inner) = x.astype(updates.dtype), updates.shape
    operations = {
        "none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum,
        "min": np.minimum,
    }  # fmt: skip
    for i, o, j, c in np.ndindex(n, other, count, inner):
        at = int(index[i, o, j, c])
        if -7 <= at < 7:
            y[i, o, at, c] = operations[kind](y[i, o, at, c], updates[i, o, j, c])
    return y


@pytest.mark.parametrize(("kind", "shared", "dtype", "inner", "padding", "vector"), [
    (WriteKind.NONE, True, DType.FP32, 4, 0, 4), (WriteKind.NONE, False, DType.FP16, 6, 2, 2),
    (WriteKind.ADD, False, DType.FP32, 4, 0, 4), (WriteKind.ADD, True, DType.INT8, 1, 0, 1),
    (WriteKind.MUL, True, DType.FP32, 6, 2, 2), (WriteKind.MUL, False, DType.INT64, 3, 0, 1),
    (WriteKind.MAX, False, DType.BF16, 4, 0, 4), (WriteKind.MAX, True, DType.INT32, 3, 0, 1),
    (WriteKind.MIN, True, DType.FP32, 4, 0, 2), (WriteKind.MIN, False, DType.UINT8, 5, 0, 1),
])  # fmt: skip
def test_writes_updates_in_their_order(
    kind: WriteKind, shared: bool, dtype: DType, inner: int, padding: int, vector: int,
    fast_execution: Any,
) -> None:  # fmt: skip
    problem, rng = written(kind, dtype, shared=shared, inner=inner, padding=padding), np.random
    drawn = rng.default_rng(2)
    x = drawn.integers(-4, 5, (3, 2, 7, inner)).astype(dtype.numpy)
    updates = drawn.integers(-4, 5, (3, 2, 5, inner)).astype(dtype.numpy)
    index = drawn.integers(-9, 9, (3, 2, 5, 1 if shared else inner))
    memory = [fast_execution.memory(problem.data, x), index.reshape(-1), updates.reshape(-1)]
    assert WRITE.why_not(problem, H200) is None
    y = fast_execution.run(WRITE, problem, VectorSchedule(vector, 64), memory, x.shape, {"n": 3})
    whole = np.broadcast_to(index, updates.shape)
    np.testing.assert_array_equal(y, expected(kind, x, whole, updates).astype(np.float64))


def test_writes_by_tuples(execution: Any) -> None:
    whole, updates = Tensor(DType.FP16, (0, 0, 8, 1)), Tensor(DType.FP16, (0, 0, 8, 1))
    problem = IndexedWrite(
        *(WriteKind.ADD, Extent(1), (1, 1), (3, 4), 6, 8, False, Advance.NONE, whole),
        *(index_of(0, 0, 2, 0, 1, dtype=DType.INT32), updates, whole),
    )
    rng = np.random.default_rng(3)
    x, new = (rng.integers(-9, 9, (n, 8)).astype(np.float16) for n in (12, 6))
    index = np.array([[0, 1], [2, 3], [-1, -1], [0, -3], [3, 0], [1, 2]], np.int32)
    memory = [x.reshape(-1), index.reshape(-1), new.reshape(-1)]
    y = execution.run(WRITE, problem, VectorSchedule(8, 64), memory, (1, 1, 12, 8))
    right = x.reshape(3, 4, 8).astype(np.float64)
    for at, update in zip(index, new, strict=True):
        if at[0] < 3:  # the fifth lies outside
            right[tuple(at)] += update
    np.testing.assert_array_equal(y.reshape(3, 4, 8), right)


def test_refuses_in_words() -> None:
    read = by_element(DType.FP32)
    strange = replace(read, index=replace(read.index, dtype=DType.FP32))
    assert "indices are fp32" in str(READ.why_not(strange, H200))
    deep = replace(read, shape=(2, 1, 1, 3, 6))
    assert "5 axes" in str(READ.why_not(deep, H200))
    across = replace(read, y=Tensor(DType.FP32, (18, 1, 3), padding=1))
    assert "does not pad" in str(READ.why_not(across, H200))
    write = written(WriteKind.ADD, DType.BOOL, shared=True, inner=4)
    assert "booleans have no add" in str(WRITE.why_not(write, H200))
    mixed = replace(write, updates=replace(write.updates, dtype=DType.FP32))
    assert "are bool, fp32" in str(WRITE.why_not(mixed, H200))
