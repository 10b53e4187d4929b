"""How a tensor map is handed to an emulated kernel."""

import struct

from wpk.emulator.errors import EmulatorError
from wpk.execution import TensorMap
from wpk.tensor_maps import faults

_PACKED_BYTES = 128
_LAYOUT = struct.Struct("<Q9q11h8B")


def pack_tensor_map(tensor: TensorMap) -> bytes:
    """The bytes of ``struct TensorMap`` in wpk/kernels/copies/tma.cuh.

    Raises:
        EmulatorError: No GPU has such a tensor map.
    """
    found = [f"{field}: {what}" for field, what in faults(tensor)]
    if found:
        raise EmulatorError(
            "a tensor map cannot be made: " + "; ".join(found),
            fix="this schedule should have been illegal: see the limits of its template",
        )
    walk = tensor.im2col
    packed = _LAYOUT.pack(
        tensor.address,
        *_padded(tensor.shape, 5),
        *_padded(tensor.strides, 4),
        *_padded(tensor.box, 5),
        *_padded(walk.lower if walk else (), 3),
        *_padded(walk.upper if walk else (), 3),
        *_padded(walk.steps if walk else (), 3),
        len(tensor.shape),
        tensor.element_bytes,
        tensor.swizzle,
        walk is not None,
        tensor.to_tf32,
    )
    return packed.ljust(_PACKED_BYTES, b"\0")


def _padded(values: tuple[int, ...], size: int) -> tuple[int, ...]:
    return (*values, *(0,) * (size - len(values)))
