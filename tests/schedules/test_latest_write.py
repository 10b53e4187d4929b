"""The last update of each place stays, whichever thread sees it first; indices outside reach no memory."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant

from wpk.dtypes import DType
from wpk.errors import LaunchError
from wpk.extent import Extent
from wpk.problems import Advance, IndexedWrite, Tensor, WriteKind
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

LATEST = TEMPLATE_OF["latest_write"]
H200 = find_target("h200")


def rows(dtype: DType, size: int, count: int, inner: int, padding: int = 0) -> IndexedWrite:
    """Two times n rows of places, ``count`` updates for each row."""
    row = inner + padding
    alignment = 16 if row * dtype.bytes % 16 == 0 else dtype.bytes
    whole = Tensor(dtype, (2 * size * row, size * row, row, 1), 0, alignment)
    part = Tensor(dtype, (2 * count * row, count * row, row, 1), 0, alignment)
    index = Tensor(DType.INT64, (2 * count, count, 1, 0, 0), alignment=8)
    problem = IndexedWrite(
        *(WriteKind.NONE, Extent(2, "n"), (2, 2), (size,), count, inner, True, Advance.NONE),
        *(whole, index, part, replace(whole, padding=padding)),
    )
    return (
        problem
        if inner > 1
        else replace(problem, index=replace(index, strides=(2 * count, count, 1, 1, 0)))
    )


def right(data: Any, index: Any, updates: Any) -> Any:
    y = data.copy()
    size = data.shape[2]
    for (i, o, j), place in np.ndenumerate(index):
        if -size <= place < size:
            y[i, o, place] = updates[i, o, j]
    return y.astype(np.float64)


def drawn(problem: IndexedWrite, n: int = 3) -> tuple[Any, Any, Any]:
    """Data, indices many of which meet and some of which lie outside, and updates."""
    rng = np.random.default_rng(0)
    index = rng.integers(-problem.size - 2, problem.size + 2, (n, 2, problem.count))
    index[:, :, ::5] = 3
    dtype = problem.y.dtype.numpy
    data, updates = (
        rng.integers(
            0, 2 if problem.y.dtype is DType.BOOL else 100, (n, 2, size, problem.inner)
        ).astype(dtype)
        for size in (problem.size, problem.count)
    )
    return data, index, updates


def computed(
    execution: Any, template: Any, problem: IndexedWrite, schedule: Any, given: Any
) -> Any:
    data, index, updates = given
    memory = [
        execution.memory(problem.data, data),
        index.reshape(-1),
        execution.memory(problem.updates, updates),
    ]
    assert template.why_illegal(problem, schedule, H200) is None
    return execution.run(template, problem, schedule, memory, data.shape, {"n": len(data)})


@pytest.mark.parametrize(
    ("dtype", "size", "count", "inner", "padding", "schedule"),
    [
        (DType.FP32, 77, 150, 1, 0, (32, 1, 64)),
        (DType.FP16, 40, 33, 6, 2, (64, 8, 64)),
        (DType.BF16, 9, 20, 5, 0, (32, 1, 128)),
        (DType.INT64, 300, 7, 1, 0, (128, 1, 64)),
        (DType.BOOL, 20, 40, 8, 0, (32, 8, 64)),
    ],
)
def test_the_last_update_stays(
    dtype: DType,
    size: int,
    count: int,
    inner: int,
    padding: int,
    schedule: tuple[int, int, int],
    checking_execution: Any,
) -> None:
    problem = rows(dtype, size, count, inner, padding)
    assert LATEST.why_not(problem, H200) is None
    given = drawn(problem)
    y = computed(checking_execution, LATEST, problem, LATEST.schedule_type(*schedule), given)
    np.testing.assert_array_equal(y, right(*given))


def test_updates_that_follow_each_other_round_a_ring(fast_execution: Any) -> None:
    problem = replace(rows(DType.FP32, 10, 4, 3), advance=Advance.CIRCULAR)
    data, _, updates = drawn(problem)
    first = np.array([[8, 3], [0, 9], [-1, 5]])
    index = np.repeat(first[..., None], 4, axis=2)
    y = computed(
        fast_execution, LATEST, problem, LATEST.schedule_type(32, 1, 64), (data, index, updates)
    )
    np.testing.assert_array_equal(y, right(data, (index + np.arange(4)) % 10, updates))


def test_not_a_number_is_written_and_stays(fast_execution: Any) -> None:
    problem = rows(DType.FP32, 9, 5, 1)
    data, index, updates = drawn(problem)
    data[0, 0, 0], updates[:, :, 0], updates[:, :, 2] = np.inf, np.nan, -np.inf
    y = computed(
        fast_execution, LATEST, problem, LATEST.schedule_type(32, 1, 64), (data, index, updates)
    )
    np.testing.assert_array_equal(y, right(data, index, updates))


@pytest.mark.parametrize(
    "fault",
    [
        Fault("every part is the first", change("part_begins", "- first", "")),
        Fault("the first stays", change("latest_kept", "update", "-update")),
        Fault("begins early", drop("none_written")),
        Fault("moves early", drop("all_seen")),
    ],
    ids=lambda fault: fault.name.replace(" ", "-"),
)
def test_faults_are_found(fault: Fault, checking_execution: Any) -> None:
    problem = rows(DType.FP32, 77, 150, 1)
    given, schedule = drawn(problem), LATEST.schedule_type(32, 1, 64)
    try:
        y = computed(checking_execution, plant(LATEST, fault), problem, schedule, given)
    except LaunchError:
        return
    assert (y != right(*given)).any()


def test_refuses_in_words() -> None:
    problem = rows(DType.FP32, 9, 5, 4)
    added = replace(problem, kind=WriteKind.ADD)
    assert "combined by add" in str(LATEST.why_not(added, H200))
    own = replace(problem, index=Tensor(DType.INT64, (40, 20, 4, 1, 0), alignment=8))
    assert "indices of their own" in str(LATEST.why_not(own, H200))
    strange = replace(problem, index=replace(problem.index, dtype=DType.FP32))
    assert "indices are fp32" in str(LATEST.why_not(strange, H200))
