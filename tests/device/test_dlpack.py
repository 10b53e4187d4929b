"""DLPack's structures are read and made as its header lays them out."""

from __future__ import annotations

import ctypes
import gc
import struct
import weakref

import pytest

from wpk.device import ForeignArray, make_capsule
from wpk.device.dlpack import exchange_of, read_capsule
from wpk.dtypes import DType

USED = b"used_dltensor"
NAME, EXCHANGE = b"dltensor", b"dlpack_exchange_api"
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

TENSOR = struct.Struct("=Q3i2BH3Q")
"""``DLTensor``: data, device, rank, type, shape, strides, offset; its rank's end is a multiple of 4."""


class Owner:
    pass


def test_a_capsule_says_what_it_was_made_of() -> None:
    for dtype in DType:
        capsule = make_capsule(0x1000, 3, dtype, (2, 5), Owner())
        assert read_capsule(capsule) == ForeignArray(0x1000, dtype.value, (2, 5), None, 3)


def test_a_capsule_has_the_headers_layout() -> None:
    """An fp16 array of shape [7] on GPU 1; 2 is kDLCUDA, and kDLFloat."""
    capsule = make_capsule(0x1000, 1, DType.FP16, (7,), Owner())
    place = api.PyCapsule_GetPointer(capsule, NAME)
    fields = TENSOR.unpack(ctypes.string_at(place, TENSOR.size))
    assert fields[:7] == (0x1000, 2, 1, 1, 2, 16, 1)
    assert ctypes.c_int64.from_address(fields[7]).value == 7
    assert fields[8:] == (0, 0)


def test_an_unused_capsule_gives_its_owner_back() -> None:
    owner = Owner()
    capsule, seen = make_capsule(0x1000, 0, DType.FP32, (1,), owner), weakref.ref(owner)
    del owner
    assert seen() is not None
    del capsule
    gc.collect()
    assert seen() is None


def test_a_consumer_gives_the_owner_back_by_the_deleter() -> None:
    owner = Owner()
    capsule, seen = make_capsule(0x1000, 0, DType.FP32, (1,), owner), weakref.ref(owner)
    del owner
    place = api.PyCapsule_GetPointer(capsule, NAME)
    deleter = ctypes.c_void_p.from_address(place + TENSOR.size + 8).value
    assert deleter is not None
    api.PyCapsule_SetName(capsule, USED)
    del capsule
    assert seen() is not None
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(place)
    assert seen() is None


def test_refuses_what_is_no_capsule_or_was_used() -> None:
    capsule = make_capsule(0x1000, 0, DType.FP32, (1,), Owner())
    api.PyCapsule_SetName(capsule, USED)
    with pytest.raises(ValueError, match="incorrect name"):
        read_capsule(capsule)
    api.PyCapsule_SetName(capsule, NAME)
    with pytest.raises(ValueError, match="PyCapsule"):
        read_capsule(object())


class Offered:
    """An array of a library with DLPack 1.3's C functions; one of these must live as long as they."""

    shape, strides = (ctypes.c_int64 * 2)(2, 3), (ctypes.c_int64 * 2)(1, 2)


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
def to_tensor(array: Offered, out: int) -> int:
    places = ctypes.addressof(array.shape), ctypes.addressof(array.strides)
    ctypes.memmove(out, TENSOR.pack(0x1000, 2, 1, 2, 4, 16, 1, *places, 64), TENSOR.size)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)
def current_stream(device: int, ordinal: int, out: int) -> int:
    ctypes.c_void_p.from_address(out).value = 100 * device + ordinal
    return 0


def table(major: int) -> ctypes.Array[ctypes.c_char]:
    functions = [ctypes.cast(f, ctypes.c_void_p).value for f in (to_tensor, current_stream)]
    return ctypes.create_string_buffer(struct.pack("=2I6Q", major, 3, 0, 0, 0, 0, *functions))


def test_reads_through_the_c_functions_where_a_type_offers_them() -> None:
    kept = table(1)
    capsule = api.PyCapsule_New(ctypes.addressof(kept), EXCHANGE, None)
    kind = type("Kind", (Offered,), {"__dlpack_c_exchange_api__": capsule})
    exchange = exchange_of(kind)
    assert exchange is not None
    assert exchange.read(kind()) == ForeignArray(0x1040, "bf16", (2, 3), (1, 2), 1)
    assert exchange.stream(1) == 201


def test_a_tensor_that_changed_where_it_lies_is_read_again() -> None:
    kept = table(1)
    capsule = api.PyCapsule_New(ctypes.addressof(kept), EXCHANGE, None)
    kind = type("Kind", (Offered,), {"__dlpack_c_exchange_api__": capsule})
    exchange, array = exchange_of(kind), kind()
    assert exchange is not None
    array.shape, array.strides = (ctypes.c_int64 * 2)(2, 3), (ctypes.c_int64 * 2)(3, 1)
    first = exchange.read(array)
    assert exchange.read(array) is first
    array.shape[0] = 5
    assert exchange.read(array).shape == (5, 3)
    array.strides[0], array.strides[1] = 1, 5
    assert exchange.read(array) == first._replace(shape=(5, 3), strides=(1, 5))


def test_leaves_c_functions_of_another_version_alone() -> None:
    kept = table(2)
    capsule = api.PyCapsule_New(ctypes.addressof(kept), EXCHANGE, None)
    assert exchange_of(type("Kind", (), {"__dlpack_c_exchange_api__": capsule})) is None
    assert exchange_of(type("Kind", (), {"__dlpack_c_exchange_api__": 12345})) is None
    assert exchange_of(type("Kind", (), {})) is None
