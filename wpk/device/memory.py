"""Memory of a GPU: allocations, guards around them, and what goes to and from them."""

from typing import Any, NamedTuple

import numpy as np

from wpk.device.errors import TrampledError, kernel_failure
from wpk.device.graph import bindings, checked
from wpk.errors import EngineError
from wpk.execution import Bytes

GUARD_BYTES = 1 << 16
"""Before and after each guarded allocation: more than a row or a tile of any kernel; a multiple of 256."""

_PATTERN = 0xA5
"""Small numbers of both signs in every type: unlike the NaN of poison and the zeros of padding."""


class _Allocation(NamedTuple):
    """An allocation with its guards, and the size of what lies between them."""

    whole: Any
    size: int


class CudaMemory:
    """What was allocated on one GPU. Its context is current whenever this is called."""

    def __init__(self, driver: Any, name: str, stream: Any, *, guard_bytes: int = 0) -> None:
        """Begin with nothing.

        Args:
            driver: ``pycuda.driver``.
            name: Of the GPU, for messages.
            stream: pycuda's, for what does not wait.
            guard_bytes: Before and after each allocation: a kernel that writes there is found out.
        """
        self._cuda, self._name, self._stream = driver, name, stream
        self._guard_bytes = guard_bytes
        self._allocations: dict[int, _Allocation] = {}

    def allocate(self, size: int) -> int:
        """The address, a multiple of 256, of ``size`` bytes with undefined contents.

        Raises:
            EngineError: There is not enough memory.
        """
        guard = self._guard_bytes
        try:
            whole = self._cuda.mem_alloc(size + 2 * guard)
        except self._cuda.MemoryError as error:
            free, total = self._cuda.mem_get_info()
            raise EngineError(
                f"{self._name} has no {size} bytes left: {free} of {total} are free",
                fix="free memory on the GPU, or run a smaller batch",
            ) from error
        address = int(whole) + guard
        self._allocations[address] = _Allocation(whole, size)
        if guard:
            self.fill(address - guard, guard, _PATTERN)
            self.fill(address + size, guard, _PATTERN)
        return address

    def free(self, address: int) -> None:
        """Give an allocation back.

        Raises:
            TrampledError: Its guards were written to.
            LaunchError: A kernel failed before they could be read.
        """
        whole, size = self._allocations.pop(address)
        touched = self._touched(address, size) if self._guard_bytes else 0
        whole.free()
        if touched:
            raise TrampledError(
                f"{touched} bytes around {size} bytes of memory were written to, which belong to no operand",
                fix="this schedule should have been illegal: see the limits of its template",
            )

    def clear(self) -> None:
        """Give everything back, and let go of the stream."""
        while self._allocations:
            self._allocations.popitem()[1].whole.free()
        self._stream = None

    def write(self, address: int, data: Bytes) -> None:
        """Copy bytes to the GPU."""
        self._cuda.memcpy_htod(address, np.ascontiguousarray(data))

    def read(self, address: int, data: Bytes) -> None:
        """Copy bytes from the GPU, after everything launched before has finished.

        Raises:
            LaunchError: A kernel failed.
        """
        try:
            self._cuda.memcpy_dtoh(data, address)
        except self._cuda.Error as error:
            raise kernel_failure(self._name, error) from error

    def fill(self, address: int, size: int, byte: int) -> None:
        """Start to set bytes of memory."""
        self._cuda.memset_d8_async(address, byte, size, self._stream)

    def _touched(self, address: int, size: int) -> int:
        """How many bytes of an allocation's guards are not what they were."""
        guard = np.empty(self._guard_bytes, np.uint8)
        touched = 0
        for start in (address - self._guard_bytes, address + size):
            self.read(start, guard)
            touched += int(np.count_nonzero(guard != _PATTERN))
        return touched


def pin(data: Bytes) -> bool:
    """Keep host memory where it is, so that the GPU copies it at full speed.

    Returns:
        Whether it is so now; where the system does not allow it, copies work all the same.
    """
    (status,) = bindings().cuMemHostRegister(data.ctypes.data, data.nbytes, 0)
    return not int(status)


def located(address: int) -> int | None:
    """Number of the GPU that an address lies on; None where it is no GPU's memory.

    Raises:
        LaunchError: The driver does not say.
    """
    driver = bindings()
    kinds = driver.CUpointer_attribute
    status, kind = driver.cuPointerGetAttribute(kinds.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)
    if int(status) or kind == driver.CUmemorytype.CU_MEMORYTYPE_HOST:
        return None
    wanted = kinds.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(checked("find memory", driver.cuPointerGetAttribute(wanted, address)))
