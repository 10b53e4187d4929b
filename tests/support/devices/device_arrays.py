"""Arrays in a device's memory, as other libraries offer them; the small network's among them."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from wpk.device import make_capsule
from wpk.dtypes import from_numpy
from wpk.engine import Engine, random_inputs


def aligned(array: np.ndarray, offset: int = 0) -> np.ndarray:
    """A copy at a multiple of 256 bytes, and ``offset`` further."""
    room = np.empty(array.nbytes + 512, np.uint8)
    start = -room.ctypes.data % 256 + offset
    place = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    place[...] = array
    return place


def x_of(engine: Engine, batch: int = 3) -> np.ndarray:
    """An input of the small network: the same for the same batch."""
    return aligned(random_inputs(engine.plan, batch, {"batch": batch})["x"])


def y_of(batch: int = 3) -> np.ndarray:
    """Room for its output, not a number anywhere."""
    return aligned(np.full((batch, 5), np.nan, np.float32))


class Interface:
    """An array that offers ``__cuda_array_interface__``."""

    def __init__(self, array: np.ndarray, **changes: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "strides": None if array.flags.c_contiguous else array.strides,
            **changes,
        }


class Dlpack:
    """An array that offers ``__dlpack__``."""

    def __init__(self, array: np.ndarray, ordinal: int = 0) -> None:
        self.array, self.ordinal = array, ordinal
        self.asked: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.ordinal

    def __dlpack__(self, *, stream: int) -> object:
        self.asked.append(stream)
        dtype = from_numpy(self.array.dtype)
        assert dtype is not None
        shape = self.array.shape
        return make_capsule(self.array.ctypes.data, self.ordinal, dtype, shape, self.array)


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
def _to_tensor(given: Exchanged, out: int) -> int:
    shape = ctypes.addressof(given.shape)
    fields = (given.array.ctypes.data, 2, 0, len(given.shape), 2, 32, 1, shape, 0, 0)
    ctypes.memmove(out, struct.pack("=Q3i2BH3Q", *fields), 48)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)
def _current_stream(device: int, ordinal: int, out: int) -> int:
    ctypes.c_void_p.from_address(out).value = 9
    return 0


def _exchange_table() -> ctypes.Array[ctypes.c_char]:
    functions = [ctypes.cast(f, ctypes.c_void_p).value for f in (_to_tensor, _current_stream)]
    return ctypes.create_string_buffer(struct.pack("=2I6Q", 1, 3, 0, 0, 0, 0, *functions))


class Exchanged:
    """An array, fp32, that offers DLPack's C functions; its library works on stream 9."""

    table, name = _exchange_table(), b"dlpack_exchange_api"  # a capsule keeps neither
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    __dlpack_c_exchange_api__ = new(("PyCapsule_New", ctypes.pythonapi))(
        ctypes.addressof(table), name, None
    )

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
