"""Arrays of other libraries on a GPU: what ``__dlpack__`` and ``__cuda_array_interface__`` say of them.

DLPack is asked first: it knows bfloat16 and the number of the GPU, and its producer makes the data
ready for the stream that will read it, or says which stream that has to wait for. Nothing is copied.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from wpk.device.dlpack import CUDA, CUDA_MANAGED, exchange_of, read_capsule
from wpk.device.foreign_array import ForeignArray
from wpk.device.streams import LEGACY_STREAM
from wpk.dtypes import from_numpy
from wpk.errors import EngineError

_ON_HOST = (np.ndarray, np.generic)


def lies_on_gpu(array: object) -> bool:
    """Whether an array is on a GPU; True of all that offers only the interface of such arrays."""
    if isinstance(array, _ON_HOST):
        return False
    device: Any = getattr(array, "__dlpack_device__", None)
    if device is not None:
        return device()[0] in (CUDA, CUDA_MANAGED)
    return hasattr(array, "__cuda_array_interface__")


def read_array(
    array: Any, name: str, stream: int, asked: set[type]
) -> tuple[ForeignArray, int | None]:
    """Describe an array on a GPU.

    Args:
        array: What `lies_on_gpu`.
        name: What messages call it.
        stream: Handle of the stream that its contents will be used on.
        asked: Types whose library has said for this run what stream it works on; added to.

    Returns:
        The description, and the handle of a stream that the contents are written on and that ours has
        to wait for; None where its library has seen to that.

    Raises:
        EngineError: It is on the host, or its library does not give it away.
    """
    try:
        return _read(array, stream, asked)
    except Exception as error:  # whatever its library raises
        raise _refusal(array, name, error) from error


def _read(array: Any, stream: int, asked: set[type]) -> tuple[ForeignArray, int | None]:
    exchange = exchange_of(array.__class__)
    if exchange is not None:
        found = exchange.read(array)
        if array.__class__ in asked:
            return found, None
        asked.add(array.__class__)
        return found, exchange.stream(found.ordinal)
    if hasattr(array, "__dlpack_device__"):
        return read_capsule(array.__dlpack__(stream=stream or LEGACY_STREAM)), None
    return _from_interface(array.__cuda_array_interface__)


def _refusal(array: object, name: str, error: Exception) -> EngineError:
    if not lies_on_gpu(array):
        return EngineError(
            f"'{name}' is a {type(array).__name__} on the host, and the run is one on GPU arrays",
            fix="give all inputs and outputs on the GPU (engine.upload makes inputs), or only "
            "NumPy inputs, without outputs and stream",
        )
    return EngineError(
        f"'{name}' is a {type(array).__name__} that cannot be shared: {error}",
        fix="give an array on the GPU without gradients, e.g. tensor.detach()",
    )


def _from_interface(interface: dict[str, Any]) -> tuple[ForeignArray, int | None]:
    """The interface's version 3, of which version 2 is a part."""
    address, read_only = interface["data"]
    kind, item = _kind_of(interface["typestr"])
    strides = interface.get("strides")
    if strides is not None:
        # A stride that is no multiple of the element becomes none of a dense array.
        strides = tuple(s // item if s % item == 0 else 0 for s in strides)
    if interface.get("mask") is not None:
        raise ValueError("it has a mask")
    array = ForeignArray(address, kind, tuple(interface["shape"]), strides, None, bool(read_only))
    return array, interface.get("stream")


@lru_cache(maxsize=64)
def _kind_of(typestr: str) -> tuple[str, int]:
    """Element type in words, and its size."""
    numpy = np.dtype(typestr)
    dtype = from_numpy(numpy)
    return (str(numpy) if dtype is None else dtype.value), numpy.itemsize
