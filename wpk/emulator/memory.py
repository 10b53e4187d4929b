"""Memory for kernels: plain, or between guard regions that turn a stray access into an error.

A single guard page is not enough: a ragged tile's store jumps over it. So 16 MiB of address space
(which cost no memory) lie unreadable on either side, and the last byte of the buffer, rounded up to
its alignment, touches the upper one.
"""

import ctypes
import mmap
import weakref
from functools import cache

import numpy as np
import numpy.typing as npt

from wpk.emulator import sanitizers
from wpk.emulator.errors import EmulatorError

Bytes = npt.NDArray[np.uint8]

_GUARD_BYTES = 16 << 20
_ALIGNMENT = 256  # of plain buffers, as on the GPU
_POISON = 0xFF  # a NaN in every floating type
# Beside a buffer: a signalling NaN as float and bfloat16, which arithmetic turns into another one, so
# that even adding to it leaves a trace.
_EDGE = (0xBF, 0xFF)
_PROT_NONE, _PROT_READ_WRITE = 0, 3
_MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x4022  # Linux
_MAP_FAILED = ctypes.c_void_p(-1).value


class DeviceBuffer:
    """Bytes that a kernel may read and write; a view of a buffer keeps it alive.

    Attributes:
        data: The bytes, writable in place.
        address: Where they lie.
    """

    def __init__(self, data: Bytes, address: int, edges: tuple[Bytes, ...] = ()) -> None:
        """Wrap memory that is already there; numpy knows no address of an empty array."""
        self.data = data
        self.address = address
        self._edges = edges

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.data.nbytes

    def view(self, offset: int, nbytes: int) -> "DeviceBuffer":
        """The part of ``nbytes`` at ``offset``.

        Raises:
            EmulatorError: It is not inside.
        """
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise EmulatorError(
                f"bytes {offset}..{offset + nbytes} of a buffer of {self.nbytes} bytes",
                fix="this is a bug in the memory plan",
            )
        return DeviceBuffer(self.data[offset : offset + nbytes], self.address + offset, self._edges)

    def forbid_edges(self) -> None:
        """Let sanitizers report accesses just outside the buffer that no guard region could see."""
        for edge in self._edges:
            sanitizers.forbid(edge.ctypes.data, edge.nbytes)

    def check_edges(self, what: str) -> None:
        """Report writes just outside the buffer that no guard region could see.

        Raises:
            EmulatorError: A byte beside the buffer has changed.
        """
        if any(_changed(edge) for edge in self._edges):
            raise EmulatorError(
                f"illegal address: a write beside {what} ({self.nbytes} bytes)",
                fix="this is a bug in the kernel: a guard at the edge of its output is missing",
            )


def _changed(edge: Bytes) -> bool:
    phase = edge.__array_interface__["data"][0] % 2
    even, odd = edge[phase::2], edge[1 - phase :: 2]
    return bool((even != _EDGE[0]).any() or (odd != _EDGE[1]).any())


def plain_buffer(nbytes: int) -> DeviceBuffer:
    """A buffer of its own, 256-byte aligned, contents undefined."""
    raw = np.empty(nbytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return DeviceBuffer(raw[start : start + nbytes], raw.ctypes.data + start)


def guarded_buffer(nbytes: int, alignment: int = 16) -> DeviceBuffer:
    """A buffer between guard regions, filled with NaN, as is the room that its alignment leaves.

    Args:
        nbytes: Its size.
        alignment: Of its address: a power of two, at most a page. The smaller, the nearer is the
            guard behind its end.

    Raises:
        EmulatorError: The address space is used up.
    """
    padded = -(-max(nbytes, 1) // alignment) * alignment
    body = -(-padded // mmap.PAGESIZE) * mmap.PAGESIZE
    total = body + 2 * _GUARD_BYTES
    base = _libc().mmap(None, total, _PROT_NONE, _MAP_PRIVATE_ANONYMOUS_NORESERVE, -1, 0)
    start = (base or 0) + _GUARD_BYTES
    if base == _MAP_FAILED or _libc().mprotect(start, body, _PROT_READ_WRITE) != 0:
        raise EmulatorError(
            f"no memory for a guarded buffer of {nbytes} bytes",
            fix="free memory, or execute without guards",
        )
    whole = (ctypes.c_uint8 * body).from_address(start)
    array: Bytes = np.ctypeslib.as_array(whole)
    weakref.finalize(whole, _give_back, base, total)
    array[0::2], array[1::2] = _EDGE
    first = body - padded
    array[first : first + nbytes] = _POISON
    edges = (array[:first], array[first + nbytes :])
    return DeviceBuffer(array[first : first + nbytes], start + first, edges)


def _give_back(address: int, size: int) -> None:
    sanitizers.permit(address, size)
    _libc().munmap(address, size)


def pages_of(array: npt.NDArray[np.generic]) -> tuple[int, int]:
    """Address and bytes of the pages that a guarded array lies in; nothing else does."""
    start = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    end = -(-(array.ctypes.data + max(array.nbytes, 1)) // mmap.PAGESIZE) * mmap.PAGESIZE
    return start, end - start


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    size, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    libc.mmap.restype = pointer
    libc.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_long]
    libc.mprotect.argtypes = [pointer, size, number]
    libc.munmap.argtypes = [pointer, size]
    return libc
