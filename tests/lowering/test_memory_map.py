"""Tensors get their places: rows padded, views called by names of their own."""

from dataclasses import replace

import pytest

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.lowering.memory_map import MemoryMap
from wpk.lowering.refusal import RefusedError

N = Extent(2)


def memory(*padded: str) -> MemoryMap:
    return MemoryMap({}, frozenset(padded), {})


@pytest.mark.parametrize(
    ("dtype", "columns", "padding"),
    [(DType.FP16, 5, 3), (DType.FP16, 8, 0), (DType.FP32, 5, 3), (DType.INT8, 17, 15), (DType.FP32, 9, 3)],
)  # fmt: skip
def test_rows_are_padded_to_16_bytes(dtype: DType, columns: int, padding: int) -> None:
    places = memory("t")
    view = places.home("t", dtype, (2, 3, columns), N)
    row = columns + padding
    assert (view.strides, view.padding) == ((3 * row, row, 1), padding)
    assert places.values["t"].padding == padding
    plain = memory().home("t", dtype, (2, 3, columns), N)
    assert (plain.strides, plain.padding) == ((3 * columns, columns, 1), 0)
    assert places.home("t", dtype, (2, 3, columns), N) == view


def test_a_tensor_without_elements_has_no_place() -> None:
    with pytest.raises(RefusedError, match=r"an empty tensor, of shape \(2, 0, 5\)"):
        memory().home("t", DType.FP32, (2, 0, 5), N)


def test_a_view_that_begins_later_is_a_value_of_its_own() -> None:
    places = memory()
    whole = places.home("t", DType.FP16, (2, 12), N)
    assert places.at(whole) == "t"
    right = whole.sliced(1, 4, 8)
    narrow, narrower = whole.sliced(1, 4, 5), whole.sliced(1, 4, 2)
    names = [places.at(view) for view in (right, narrow, right, narrower, narrow)]
    assert names == ["t@4", "t@4.2", "t@4", "t@4.3", "t@4.2"]
    seen = places.values["t@4.2"]
    assert (seen.offset, seen.shape, seen.logical_shape, seen.buffer) == (8, (2, 5), (2, 5), "t")
    again = places.at(replace(places.view("t@4"), offset=3))
    assert (again, places.values[again].offset) == ("t@4@3", 14)
