"""How a tensor map is handed to an emulated kernel."""

import struct

from wpk.emulator.errors import EmulatorError
from wpk.execution import TensorMap

_PACKED_BYTES = 128


def pack_tensor_map(tensor: TensorMap) -> bytes:
    """The bytes of ``struct TensorMap`` in wpk/kernels/tma.cuh.

    Raises:
        EmulatorError: It is in im2col mode.
    """
    if tensor.im2col is not None:
        raise EmulatorError(
            "a tensor map in im2col mode is not emulated",
            fix="choose a schedule without it, or execute it on a GPU",
        )
    extents, strides, box = (
        (*values, *(0,) * (size - len(values)))
        for values, size in ((tensor.shape, 5), (tensor.strides, 4), (tensor.box, 5))
    )
    numbers = (len(tensor.shape), tensor.element_bytes, tensor.swizzle)
    packed = struct.pack("<Q9q8i", tensor.address, *extents, *strides, *box, *numbers)
    return packed.ljust(_PACKED_BYTES, b"\0")
