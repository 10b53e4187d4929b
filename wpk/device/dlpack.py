"""DLPack without a library: read a tensor, and make a capsule of one (``dlpack.h``, 0.8 and 1.3).

Capsules are those of the unversioned protocol, called ``dltensor``, which every producer and consumer
of today speaks. Types that offer DLPack 1.3's C functions are read through these, which is faster and
tells the producer's stream.
"""

import ctypes
import struct
from functools import lru_cache
from typing import Any, NamedTuple

from wpk.device.foreign_array import ForeignArray
from wpk.dtypes import DType

CUDA = 2
"""``kDLCUDA``."""

CUDA_MANAGED = 13
"""``kDLCUDAManaged``."""

_NAME = b"dltensor"  # a capsule keeps no copy of its name
_TYPE_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
"""By NumPy's kind."""

_OWN_CODES = {DType.BF16: 4, DType.FP8_E4M3: 10, DType.FP8_E5M2: 12}
"""Of types that NumPy lacks: ``kDLBfloat``, ``kDLFloat8_e4m3fn``, ``kDLFloat8_e5m2``."""

_CODES = {
    dtype: (_OWN_CODES.get(dtype) or _TYPE_CODES[dtype.numpy.kind], 8 * dtype.bytes)
    for dtype in DType
}
_KINDS = {(*code, 1): dtype.value for dtype, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_FIELDS = struct.Struct("=Q3i2BH3Q")
"""`_Tensor`, in one go: reading its fields one by one takes longer than all the rest."""

_Header = ctypes.c_char * ctypes.sizeof(_Tensor)
_Handle = ctypes.c_void_p * 1

_TENSORS_KEPT = 256
"""Tensors of a type whose structure is not read again while it is the same, to the byte."""


class _ManagedTensor(ctypes.Structure):
    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class _Exchange(ctypes.Structure):
    """``DLPackExchangeAPI``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("to_managed", ctypes.c_void_p),
        ("from_managed", ctypes.c_void_p),
        ("to_tensor", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )


_TO_TENSOR = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)

_api = ctypes.pythonapi
_pointer = _api.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_new = _api.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
# A capsule that is being destroyed must not become a Python object again: addresses only.
_dying_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)


def read_capsule(capsule: object) -> ForeignArray:
    """Look into a capsule without consuming it: the producer keeps what it owns.

    Raises:
        ValueError: It is no unconsumed capsule of DLPack, or of no array on a GPU.
    """
    return _read(_ManagedTensor.from_address(_pointer(capsule, _NAME)).tensor)


class _Reading(NamedTuple):
    """What was read of a tensor, and the memory that its structure points to with what it held."""

    extents: ctypes.Array[ctypes.c_char]
    extents_were: bytes
    strides: ctypes.Array[ctypes.c_char]
    strides_were: bytes
    array: ForeignArray


class DlpackExchange:
    """The C functions of a type of arrays."""

    def __init__(self, table: _Exchange) -> None:
        """Take the functions of a table of version 1, which has both."""
        self._to_tensor, self._stream = _TO_TENSOR(table.to_tensor), _STREAM(table.stream)
        self._seen: dict[bytes, _Reading] = {}

    def read(self, array: object) -> ForeignArray:
        """What an array says of itself; nothing waits.

        Raises:
            ValueError: It is not on a GPU.
            Exception: The producer's, where it does not give the array away.
        """
        header = _Header()
        self._to_tensor(array, header)
        raw = header.raw
        seen = self._seen.get(raw)
        if seen is not None:
            # An equal structure points to the same memory, which the array keeps valid at the moment.
            extents, extents_were, strides, strides_were, found = seen
            if extents.raw == extents_were and strides.raw == strides_were:
                return found
        return self._look(raw)

    def _look(self, raw: bytes) -> ForeignArray:
        """Read a structure, and keep what it says."""
        structure = _Tensor.from_buffer_copy(raw)
        size, shape, strides = 8 * structure.ndim, structure.shape, structure.strides
        views = [
            (ctypes.c_char * (size if place else 0)).from_address(_address(place))
            for place in (shape, strides)
        ]
        found = _read(structure)
        if len(self._seen) >= _TENSORS_KEPT:
            self._seen.clear()
        self._seen[raw] = _Reading(views[0], views[0].raw, views[1], views[1].raw, found)
        return found

    def stream(self, ordinal: int | None) -> int:
        """Handle of the stream that the producer works on at the moment, on a GPU by its number."""
        stream = _Handle()
        self._stream(CUDA, ordinal, stream)
        return stream[0] or 0


@lru_cache(maxsize=64)
def exchange_of(kind: type) -> DlpackExchange | None:
    """The C functions that a type of arrays offers, or None."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if type(capsule).__name__ != "PyCapsule":
        return None
    table = _Exchange.from_address(_pointer(capsule, b"dlpack_exchange_api"))
    usable = table.major == 1 and table.to_tensor and table.stream
    return DlpackExchange(table) if usable else None


def _read(tensor: _Tensor) -> ForeignArray:
    data, device, ordinal, rank, code, bits, lanes, shape, strides, offset = _FIELDS.unpack(tensor)
    if device not in (CUDA, CUDA_MANAGED):
        raise ValueError("it is not on a GPU")
    return ForeignArray(
        data + offset,
        _KINDS.get((code, bits, lanes)) or f"DLPack's type {code} of {bits} bits x {lanes}",
        _longs(rank).unpack(ctypes.string_at(shape, 8 * rank)),
        _longs(rank).unpack(ctypes.string_at(strides, 8 * rank)) if strides else None,
        ordinal,
    )


def _address(pointer: Any) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


@lru_cache(maxsize=64)
def _longs(count: int) -> struct.Struct:
    return struct.Struct(f"={count}q")


_held: dict[int, tuple[Any, ...]] = {}
"""What capsules in use need, by the address of their structure, until their consumer deletes them."""


def make_capsule(
    address: int, ordinal: int, dtype: DType, shape: tuple[int, ...], owner: object
) -> object:
    """A capsule of a dense array on a GPU.

    Args:
        address: Of its first element.
        ordinal: Number of the GPU.
        dtype: Element type.
        shape: Extents.
        owner: What must live as long as the consumer uses the memory.
    """
    managed = _ManagedTensor()
    extents = (ctypes.c_int64 * len(shape))(*shape)
    tensor = managed.tensor
    tensor.data, tensor.device_type, tensor.device_id = address, CUDA, ordinal
    tensor.ndim, tensor.lanes = len(shape), 1
    tensor.code, tensor.bits = _CODES[dtype]
    tensor.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = ctypes.cast(_DELETE, ctypes.c_void_p).value
    place = ctypes.addressof(managed)
    _held[place] = (managed, extents, owner)
    return _new(place, _NAME, ctypes.cast(_DROP, ctypes.c_void_p))


def _delete(managed: int) -> None:
    """The consumer needs the memory no longer."""
    _held.pop(managed, None)


def _drop(capsule: int) -> None:
    """A capsule goes away; one that was never consumed is still called as it was made."""
    if _dying_is_valid(capsule, _NAME):
        _delete(_dying_pointer(capsule, _NAME))


_callback = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p
)  # takes Python's lock: consumers may not hold it
_DELETE, _DROP = _callback(_delete), _callback(_drop)
