"""Large arrays in files: the same values, read-only, and no descriptor for each."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from wpk import file_arrays
from wpk.errors import EngineError
from wpk.file_arrays import LARGE_BYTES, MappedFiles, in_file


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_, ml_dtypes.bfloat16])
def test_an_array_in_a_file_has_the_same_values(dtype: Any) -> None:
    drawn = np.random.default_rng(0).integers(0, 2, (3, LARGE_BYTES))
    numbers = drawn.astype(np.dtype(dtype))
    kept = in_file(numbers)
    assert kept is not numbers
    assert kept.dtype == numbers.dtype
    assert kept.shape == numbers.shape
    assert np.array_equal(kept, numbers)
    assert not kept.flags.writeable
    assert in_file(kept) is kept
    assert in_file(kept.reshape(-1)).base is not None


def test_a_turned_array_is_written_as_it_is_read() -> None:
    numbers = np.arange(LARGE_BYTES, dtype=np.float32).reshape(-1, 1024)
    turned = in_file(in_file(numbers).T)
    assert turned.flags.c_contiguous
    assert np.array_equal(turned, numbers.T)


def test_a_small_array_stays_in_memory() -> None:
    small = np.zeros(LARGE_BYTES // 4 - 1, np.float32)
    assert in_file(small) is small


def test_many_arrays_share_a_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))
    kept = [in_file(np.full(LARGE_BYTES, number, np.uint8)) for number in range(64)]
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    assert [int(each[-1]) for each in kept] == list(range(64))


def test_threads_write_into_places_of_their_own() -> None:
    def write(number: int) -> np.ndarray:
        return in_file(np.full(LARGE_BYTES, number, np.uint8))

    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(write, range(64)))
    assert all((each == number).all() for number, each in enumerate(kept))


def test_a_process_that_is_forked_off_writes_a_file_of_its_own() -> None:
    first = in_file(np.full(LARGE_BYTES, 1, np.uint8))
    child = os.fork()
    if child == 0:
        in_file(np.full(LARGE_BYTES, 2, np.uint8))
        os._exit(0)
    os.waitpid(child, 0)
    third = in_file(np.full(LARGE_BYTES, 3, np.uint8))
    assert (first == 1).all()
    assert (third == 3).all()


def test_a_folder_without_room_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setattr(file_arrays, "_open_files", {})
    with pytest.raises(EngineError, match=r"missing.*No such file") as error:
        in_file(np.zeros(LARGE_BYTES, np.uint8))
    assert "TMPDIR" in error.value.fix


@pytest.mark.parametrize("worth", [0, 2**40], ids=["mapped", "copied"])
def test_arrays_of_a_file_are_found(
    worth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_arrays, "_WORTH_MAPPING", worth)
    numbers = np.arange(LARGE_BYTES, dtype=np.float32)
    (tmp_path / "data").write_bytes(b"head" + numbers.tobytes())
    files, dtype = MappedFiles(), np.dtype(np.float32)
    found = files.array(tmp_path / "data", 4, dtype, (4, LARGE_BYTES // 4))
    assert np.array_equal(found.reshape(-1), numbers)
    assert not found.flags.writeable
    with pytest.raises(ValueError, match="ends at byte"):
        files.array(tmp_path / "data", 8, dtype, (LARGE_BYTES,))
