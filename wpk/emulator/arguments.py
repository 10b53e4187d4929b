"""Kernel arguments that are neither numbers nor arrays."""

import struct
from dataclasses import dataclass

_PACKED_BYTES = 128


@dataclass(frozen=True)
class Pointer:
    """An address as a kernel argument."""

    address: int


@dataclass(frozen=True)
class TensorMap:
    """What a tensor copy reads; the emulator's counterpart of ``CUtensorMap``.

    Attributes:
        address: Of the first element.
        element_bytes: Size of an element.
        shape: In elements, innermost first.
        strides: In bytes, of all dimensions but the innermost.
        box: In elements, innermost first.
        swizzle: 0, 32, 64 or 128 bytes.
    """

    address: int
    element_bytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    def pack(self) -> bytes:
        """The bytes of ``struct TensorMap`` in wpk/kernels/tma.cuh."""
        extents, strides, box = (
            (*values, *(0,) * (size - len(values)))
            for values, size in ((self.shape, 5), (self.strides, 4), (self.box, 5))
        )
        numbers = (len(self.shape), self.element_bytes, self.swizzle)
        packed = struct.pack("<Q9q8i", self.address, *extents, *strides, *box, *numbers)
        return packed.ljust(_PACKED_BYTES, b"\0")
