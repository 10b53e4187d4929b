"""Guards around allocations find out what was written there, on a driver whose memory is NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wpk.device.errors import TrampledError
from wpk.device.memory import GUARD_BYTES, CudaMemory
from wpk.errors import EngineError, LaunchError

START, BYTES = 1 << 20, 1 << 20


class Driver:
    """``pycuda.driver`` with one megabyte."""

    class Error(Exception):
        pass

    class MemoryError(Exception):  # the driver's name
        pass

    class Allocation(int):
        freed = False

        def free(self) -> None:
            self.freed = True

    def __init__(self) -> None:
        self.memory = np.zeros(BYTES, np.uint8)
        self.allocations: list[Driver.Allocation] = []
        self.broken = False

    def mem_alloc(self, size: int) -> Allocation:
        if size > BYTES:
            raise self.MemoryError
        self.allocations.append(self.Allocation(START))
        return self.allocations[-1]

    def mem_get_info(self) -> tuple[int, int]:
        return BYTES, BYTES

    def memcpy_htod(self, address: int, data: np.ndarray) -> None:
        self.memory[address - START :][: data.size] = data

    def memcpy_dtoh(self, data: np.ndarray, address: int) -> None:
        if self.broken:
            raise self.Error("illegal address")
        data[:] = self.memory[address - START :][: data.size]

    def memset_d8_async(self, address: int, byte: int, size: int, stream: object) -> None:
        assert stream == "stream"
        self.memory[address - START :][:size] = byte


@pytest.fixture(name="driver")
def fixture_driver() -> Driver:
    return Driver()


def memory_of(driver: Any, guard_bytes: int = GUARD_BYTES) -> CudaMemory:
    return CudaMemory(driver, "a GPU", "stream", guard_bytes=guard_bytes)


def test_writes_within_an_allocation_are_nobodys_business(driver: Driver) -> None:
    memory = memory_of(driver)
    address = memory.allocate(1000)
    assert (address - START, address % 256) == (GUARD_BYTES, 0)
    memory.write(address, np.full(1000, 7, np.uint8))
    read = np.empty(1000, np.uint8)
    memory.read(address, read)
    assert (read == 7).all()
    memory.free(address)
    assert driver.allocations[0].freed


@pytest.mark.parametrize("offset", [-GUARD_BYTES, -1, 1000, 999 + GUARD_BYTES])
def test_a_write_beside_an_allocation_is_found_out_when_it_is_freed(
    driver: Driver, offset: int
) -> None:
    memory = memory_of(driver)
    address = memory.allocate(1000)
    driver.memory[address - START + offset] ^= 1
    with pytest.raises(TrampledError, match="1 bytes around 1000 bytes"):
        memory.free(address)
    assert driver.allocations[0].freed


def test_without_guards_nothing_is_looked_at(driver: Driver) -> None:
    memory = memory_of(driver, guard_bytes=0)
    driver.broken = True
    assert memory.allocate(1000) == START
    memory.free(START)


def test_what_is_left_is_given_back_and_what_is_too_much_refused(driver: Driver) -> None:
    memory = memory_of(driver)
    with pytest.raises(EngineError, match="a GPU has no 1048576 bytes left"):
        memory.allocate(BYTES)
    memory.allocate(1000)
    memory.clear()
    assert driver.allocations[0].freed


def test_a_kernel_that_failed_is_told_from_a_write(driver: Driver) -> None:
    memory = memory_of(driver)
    address = memory.allocate(1000)
    driver.broken = True
    with pytest.raises(LaunchError, match="a kernel failed on a GPU: illegal address") as failed:
        memory.free(address)
    assert not isinstance(failed.value, TrampledError)
