"""Tensors go to the child and back through shared memory, which is used again and never left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.devices import numpy_child
from support.devices.numpy_child import NumpyProcess

from wpk.device import GpuLostError, GpuTimeoutError
from wpk.process.shared import SharedMemory, SharedSegments

LARGE = (5 << 20) + 3


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[NumpyProcess]:
    monkeypatch.setenv("PYTHONPATH", str(Path(numpy_child.__file__).parents[2]))
    with NumpyProcess(limit_seconds=20.0) as process:
        yield process


@pytest.fixture
def shared() -> Iterator[SharedMemory]:
    memory = SharedMemory()
    yield memory
    memory.close()


def data(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_both_sides_see_the_same_bytes(shared: SharedMemory) -> None:
    pinned: list[int] = []
    child = SharedSegments(shared.descriptor, lambda array: pinned.append(array.size))
    loans = [shared.lend(size) for size in (1, 65536, LARGE)]
    for number, loan in enumerate(loans):
        loan.array[...] = data(loan.array.size, number)
    for number, loan in enumerate(loans):
        there = child.array(loan.segment, loan.array.size)
        assert np.array_equal(there, data(loan.array.size, number))
        there[0] ^= 1
        assert loan.array[0] == there[0]
        child.array(loan.segment, 1)
    assert pinned == [loan.segment.size for loan in loans]


def test_a_segment_is_used_again_when_its_last_view_is_gone(shared: SharedMemory) -> None:
    loan = shared.lend(LARGE)
    segment, view = loan.segment, loan.array[100:][::2].view(np.int8)
    del loan
    assert shared.lend(LARGE).segment != segment
    del view
    assert segment in {loan.segment for loan in [shared.lend(LARGE) for _ in range(2)]}
    size = os.fstat(shared.descriptor).st_size
    for number in range(200):
        shared.lend(LARGE - number)
    assert os.fstat(shared.descriptor).st_size == size


@pytest.mark.parametrize("size", [0, 1, 65536, 65537, 1 << 20, LARGE, 32 * 64 * 112 * 112 * 2])
def test_a_segment_is_little_larger_than_asked_for(shared: SharedMemory, size: int) -> None:
    segment = shared.lend(size).segment
    assert size <= segment.size <= max(size + 65536, 1.125 * size)
    assert segment.size % 65536 == 0


def test_what_was_written_is_read(process: NumpyProcess) -> None:
    for size in (1, 1000, LARGE):
        address = process.allocate(size)
        process.write(address, data(size))
        assert np.array_equal(process.read(address, size), data(size))
    process.write(address + 7, data(2 * 50, 1)[::2])  # an array that is not contiguous
    assert np.array_equal(process.read(address + 7, 50), data(100, 1)[::2])
    process.write(address, data(600, 2).reshape(2, 300))
    assert np.array_equal(process.read(address, 600), data(600, 2))
    assert process.read(address, 0).size == 0
    process.fill(address + 100, 200, 0xA5)
    expected = np.concatenate((data(600, 2)[:100], np.full(200, 0xA5), data(600, 2)[300:]))
    assert np.array_equal(process.read(address, 600), expected)


def test_arrays_that_were_read_stay_as_they_are(process: NumpyProcess) -> None:
    address = process.allocate(LARGE)
    found = []
    for seed in range(4):
        process.write(address, data(LARGE, seed))
        found.append(process.read(address, LARGE))
    process.close()
    for seed, each in enumerate(found):
        assert np.array_equal(each, data(LARGE, seed))


def test_trials_do_not_need_more_and_more_memory(process: NumpyProcess) -> None:
    address = process.allocate(LARGE)
    sizes, pinned = set(), set()
    for seed in range(10):
        process.write(address, data(LARGE, seed))
        process.read(address, LARGE)
        sizes.add(os.fstat(process._shared.descriptor).st_size)
        pinned.add(process.pinned())
    assert len(sizes) == len(pinned) == 1
    assert sizes == pinned


@pytest.mark.parametrize("end", ["closed", "killed", "hangs", "interrupted"])
def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(numpy_child.__file__).parents[2]))
    files, names = open_files(), set(os.listdir("/dev/shm"))
    process = NumpyProcess(limit_seconds=0.5 if end == "hangs" else 20.0)
    address = process.allocate(LARGE)
    process.write(address, data(LARGE))
    left = process.read(address, LARGE)
    if end == "killed":
        os.kill(process._child.pid, signal.SIGKILL)
        with pytest.raises(GpuLostError):
            [process.read(address, LARGE) for _ in range(2)]
    elif end == "hangs":
        with pytest.raises(GpuTimeoutError):
            process.sleep(30.0)
    elif end == "interrupted":
        monkeypatch.setattr(process._child._channel, "receive_answer", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            process.write(address, data(LARGE))
        assert not process.is_alive  # what it still answered would be taken for the next call's
    process.close()
    assert np.array_equal(left, data(LARGE))
    del left
    assert open_files() == files
    assert set(os.listdir("/dev/shm")) <= names
    assert not process.is_alive


def _interrupt(*_waited_for: object) -> None:
    time.sleep(0.05)
    raise KeyboardInterrupt
