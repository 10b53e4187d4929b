"""Memory of large arrays is used again when they are gone, and not before."""

from collections.abc import Iterator

import numpy as np
import pytest

from wpk import reused_memory
from wpk.reused_memory import LEAST_BYTES, empty, let_go, unused_bytes


@pytest.fixture(autouse=True)
def nothing_unused() -> Iterator[None]:
    let_go()
    yield
    let_go()


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_what_is_gone_is_used_again() -> None:
    array = empty((LEAST_BYTES // 8 + 3,), np.float64)
    address = _address(array)
    del array
    assert _address(empty((LEAST_BYTES,), np.uint8)) == address


def test_what_a_view_holds_is_not_used_again() -> None:
    array = empty((4, LEAST_BYTES // 4), np.float32)
    array[...] = 7.0
    view = array[1:].reshape(-1)[5:].view(np.int32).view(np.float32)
    del array
    other = empty((4, LEAST_BYTES // 4), np.float32)
    other[...] = 1.0
    assert (view == 7.0).all()
    del view
    assert unused_bytes() >= other.nbytes


def test_what_is_much_larger_stays_for_larger_arrays() -> None:
    array = empty((8 * LEAST_BYTES,), np.uint8)
    address = _address(array)
    del array
    small = empty((2 * LEAST_BYTES,), np.uint8)
    assert _address(small) != address
    assert _address(empty((5 * LEAST_BYTES,), np.uint8)) == address


def test_no_more_is_kept_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reused_memory, "most_unused_bytes", lambda: 3 * LEAST_BYTES)
    arrays = [empty((2 * LEAST_BYTES,), np.uint8) for _ in range(3)]
    del arrays
    assert unused_bytes() == 2 * LEAST_BYTES
    let_go()
    assert unused_bytes() == 0


@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.bool_, "bfloat16", object])
@pytest.mark.parametrize("shape", [(), (0, 5), (3, 7), (3, LEAST_BYTES)])
def test_arrays_are_numpys(dtype: object, shape: tuple[int, ...]) -> None:
    import ml_dtypes

    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    array = empty(shape, kind)
    assert (array.shape, array.dtype, array.flags.writeable) == (shape, kind, True)
    assert array.flags.c_contiguous


def test_keeping_what_is_freed_is_asked_for_once_and_works() -> None:
    reused_memory.keep_freed()
    reused_memory.keep_freed()
    assert reused_memory.keep_freed.cache_info().misses == 1


@pytest.mark.parametrize(("pages", "most"), [(1, 1 << 30), (1 << 22, 1 << 31)])
def test_a_part_of_free_memory_is_kept(
    pages: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reused_memory, "free_bytes", lambda: 4096 * pages)
    assert reused_memory.most_unused_bytes.__wrapped__() == most
