"""A GPU whose allocations lie between guards: a kernel that writes beyond its memory is found out."""

import numpy as np

from wpk.device.cuda import CudaDevice
from wpk.device.errors import TrampledError

GUARD_BYTES = 1 << 16
"""Before and after each allocation: more than a row or a tile of any kernel; a multiple of 256."""

_PATTERN = 0xA5
"""Small numbers of both signs in every type: unlike the NaN of poison and the zeros of padding."""


class GuardedCudaDevice(CudaDevice):
    """As `CudaDevice`; an allocation is checked when it is given back."""

    def __init__(self, ordinal: int = 0) -> None:
        """See `CudaDevice`."""
        super().__init__(ordinal)
        self._sizes: dict[int, int] = {}

    def allocate(self, size: int) -> int:
        """The address of memory between two guards; see `CudaDevice.allocate`."""
        start = super().allocate(size + 2 * GUARD_BYTES)
        address = start + GUARD_BYTES
        self._sizes[address] = size
        self.fill(start, GUARD_BYTES, _PATTERN)
        self.fill(address + size, GUARD_BYTES, _PATTERN)
        return address

    def free(self, address: int) -> None:
        """Give an allocation back.

        Raises:
            TrampledError: Its guards were written to.
        """
        size = self._sizes.pop(address)
        start = address - GUARD_BYTES
        before, after = self.read(start, GUARD_BYTES), self.read(address + size, GUARD_BYTES)
        super().free(start)
        touched = np.count_nonzero(before != _PATTERN) + np.count_nonzero(after != _PATTERN)
        if touched:
            raise TrampledError(
                f"{touched} bytes around {size} bytes of memory were written to, which belong to no operand",
                fix="this schedule should have been illegal: see the limits of its template",
            )
