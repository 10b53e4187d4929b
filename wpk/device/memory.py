"""Allocations on a GPU."""

from typing import Any

from wpk.device.graph import bindings, checked
from wpk.errors import EngineError
from wpk.execution import Bytes


class CudaMemory:
    """What was allocated on one GPU. Its context is current whenever this is called."""

    def __init__(self, driver: Any, name: str) -> None:
        """Begin with nothing.

        Args:
            driver: ``pycuda.driver``.
            name: Of the GPU, for messages.
        """
        self._cuda = driver
        self._name = name
        self._allocations: dict[int, Any] = {}

    def allocate(self, size: int) -> int:
        """The address, a multiple of 256, of ``size`` bytes with undefined contents.

        Raises:
            EngineError: There is not enough memory.
        """
        try:
            allocation = self._cuda.mem_alloc(size)
        except self._cuda.MemoryError as error:
            free, total = self._cuda.mem_get_info()
            raise EngineError(
                f"{self._name} has no {size} bytes left: {free} of {total} are free",
                fix="free memory on the GPU, or run a smaller batch",
            ) from error
        self._allocations[int(allocation)] = allocation
        return int(allocation)

    def free(self, address: int) -> None:
        """Give an allocation back."""
        self._allocations.pop(address).free()

    def clear(self) -> None:
        """Give everything back."""
        while self._allocations:
            self._allocations.popitem()[1].free()


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
