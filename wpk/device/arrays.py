"""Arrays of other libraries on a GPU: what ``__dlpack__`` and ``__cuda_array_interface__`` say of them.

DLPack is asked first: it knows bfloat16 and the number of the GPU, and its producer makes the data
ready for the stream that will read it. Nothing is copied.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wpk.device.dlpack import CUDA, CUDA_MANAGED, read_capsule
from wpk.device.streams import interface_handle
from wpk.dtypes import DType, from_numpy
from wpk.errors import EngineError


@dataclass(frozen=True)
class ForeignArray:
    """An array that lies on a GPU.

    Attributes:
        address: Of its first element.
        dtype: Element type; None where wpk has none.
        words: The type for messages.
        shape: Extents.
        strides: In elements; None where it is dense in C's order.
        ordinal: Number of its GPU; None where the array does not say.
        stream: Handle of the stream that its contents are written on; None where they are ready.
        read_only: Whether writing to it is forbidden.
    """

    address: int
    dtype: DType | None
    words: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    ordinal: int | None
    stream: int | None
    read_only: bool

    @property
    def is_dense(self) -> bool:
        """Whether its elements follow each other in C's order."""
        if self.strides is None:
            return True
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step *= size
        return True


def lies_on_gpu(array: object) -> bool:
    """Whether an array is on a GPU; True of all that offers only the interface of such arrays."""
    if isinstance(array, np.ndarray | np.generic):
        return False
    device: Any = getattr(array, "__dlpack_device__", None)
    if device is not None:
        return device()[0] in (CUDA, CUDA_MANAGED)
    return hasattr(array, "__cuda_array_interface__")


def read_array(array: Any, name: str, stream: int) -> ForeignArray:
    """Describe an array on a GPU.

    Args:
        array: What `lies_on_gpu`.
        name: What messages call it.
        stream: Handle of the stream that its contents will be used on.

    Raises:
        EngineError: Its library does not give it away, e.g. because gradients are recorded.
    """
    try:
        if hasattr(array, "__dlpack_device__"):
            return _from_dlpack(array, stream)
        return _from_interface(array.__cuda_array_interface__)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise EngineError(
            f"'{name}' is a {type(array).__name__} that cannot be shared: {error}",
            fix="give an array on the GPU without gradients, e.g. tensor.detach()",
        ) from error


def _from_dlpack(array: Any, stream: int) -> ForeignArray:
    tensor = read_capsule(array.__dlpack__(stream=interface_handle(stream)))
    return ForeignArray(
        tensor.address,
        tensor.dtype,
        tensor.words if tensor.dtype is None else str(tensor.dtype),
        tensor.shape,
        tensor.strides,
        tensor.device[1],
        None,
        read_only=False,
    )


def _from_interface(interface: dict[str, Any]) -> ForeignArray:
    """The interface's version 3, of which version 2 is a part."""
    address, read_only = interface["data"]
    kind = np.dtype(interface["typestr"])
    strides = interface.get("strides")
    if strides is not None:
        # A stride that is no multiple of the element becomes none of a dense array.
        strides = tuple(s // kind.itemsize if s % kind.itemsize == 0 else 0 for s in strides)
    if interface.get("mask") is not None:
        raise ValueError("it has a mask")
    return ForeignArray(
        address,
        from_numpy(kind),
        str(kind),
        tuple(interface["shape"]),
        strides,
        None,
        interface.get("stream"),
        bool(read_only),
    )
