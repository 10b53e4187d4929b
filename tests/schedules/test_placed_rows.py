"""Rows placed by free dimensions: exact at odd sizes, planted faults seen, refusals in words."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, plant

from wpk.codec import decode, encode
from wpk.dtypes import DType
from wpk.emulator import EmulatorError
from wpk.extent import Extent
from wpk.problems import PlacedRows, Problem, RowPlacing, Tensor
from wpk.problems.signs import TIMES
from wpk.schedules.placed_rows import PlacedRowsTemplate
from wpk.schedules.streaming import VectorSchedule
from wpk.targets.registry import find_target

TEMPLATE, H200 = PlacedRowsTemplate(), find_target("h200")
SIZES = ((1, 1), (1, 7), (7, 1), (5, 17), (3, 33))
COLS, POINT = 20, {"repeated": "row_of_one", "spread": "row_of_all", "first": "first_row"}


def problem(placing: RowPlacing, dtype: DType = DType.FP16, padding: int = 0) -> PlacedRows:
    """Tuned at (2, 3), with rows of x further apart than they are long."""
    x, y = Tensor(dtype, (COLS + 4, 1), 0, 8), Tensor(dtype, (COLS + padding, 1), padding, 8)
    return PlacedRows(placing, Extent(2, "b"), Extent(3, "s"), COLS, x, y)


def moved(execution: Any, template: Any, placed: PlacedRows, sizes: tuple[int, int]) -> Any:
    """What the kernel gives, and what is right."""
    outer, inner = sizes
    first, repeated = placed.placing is RowPlacing.FIRST, placed.placing is RowPlacing.REPEATED
    rows = outer * inner if first else inner if repeated else outer
    x = np.random.default_rng(0).standard_normal((rows, COLS)).astype(placed.x.dtype.numpy)
    right = x[::inner] if first else np.tile(x, (outer, 1)) if repeated else x.repeat(inner, 0)
    memory = [execution.memory(placed.x, x)]
    dims = {"b": outer, "s": inner}
    schedule = VectorSchedule(4, 64)
    return execution.run(template, placed, schedule, memory, right.shape, dims), right


@pytest.mark.parametrize("placing", list(RowPlacing))
@pytest.mark.parametrize("sizes", SIZES)
def test_rows_are_where_they_belong(
    placing: RowPlacing, sizes: tuple[int, int], checking_execution: Any
) -> None:
    for placed in (problem(placing), problem(placing, DType.FP32, padding=4)):
        y, right = moved(checking_execution, TEMPLATE, placed, sizes)
        np.testing.assert_array_equal(y, right)


@pytest.mark.parametrize("placing", list(RowPlacing))
def test_a_planted_fault_is_seen(placing: RowPlacing, checking_execution: Any) -> None:
    fault = Fault("one row too far", change(POINT[placing], "row", "(row + 1)"))
    try:
        y, right = moved(checking_execution, plant(TEMPLATE, fault), problem(placing), (5, 17))
    except EmulatorError:
        return
    assert (y != right).any()


def test_says_what_is_read_and_comes_back_from_a_file() -> None:
    placed = problem(RowPlacing.REPEATED)
    assert decode(encode(placed, Problem), Problem, "problem") == placed
    (read,), written = placed.accesses()
    assert read is not None
    dims = {"b": 5, "s": 7}
    assert read.span_bytes(dims) == (6 * (COLS + 4) + COLS) * 2
    assert written.span_bytes(dims) == 5 * 7 * COLS * 2
    assert placed.words() == f"repeated rows of 20, b{TIMES}s"
    first = problem(RowPlacing.FIRST)
    assert first.leading == Extent(2, "b")
    assert first.source.names == ("b", "s")
    assert first.traffic().bytes == 2 * 2 * COLS * 2


def test_refuses_padding_in_words() -> None:
    across = replace(problem(RowPlacing.SPREAD), y=Tensor(DType.FP16, (1, 50), padding=1))
    assert "does not pad" in str(TEMPLATE.why_not(across, H200))
