"""The memory of large arrays is used again when they are gone.

The system fills each page of fresh memory with zeros when it is first touched, one page at a time and, of one process, behind
one lock. That takes longer than what checks compute for a page, most of all on many cores.
"""

import ctypes
import mmap
import threading
import weakref
from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wpk.free_memory import free_bytes

LEAST_BYTES = 1 << 20
"""Smaller arrays are left to NumPy, whose memory the C library uses again by itself."""

LEAST_KEPT_BYTES, _KEPT_OF_FREE = 1 << 30, 8
"""What is kept for arrays to come at least, and the part of the machine's free memory that is; beyond that, memory goes back to the
system."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's ``mallopt``."""

_MOST_TRIMMED, _MOST_IN_HEAPS = 2**31 - 1, 32 << 20
"""Bytes: what freed memory is kept at the end of a heap, and the largest array that glibc lets lie in one."""

_unused: list[mmap.mmap] = []  # changed by single calls only, which other threads see as one
_lock = threading.Lock()


def empty(shape: Sequence[int], dtype: DTypeLike) -> NDArray[np.generic]:
    """Return an array with undefined contents, as `numpy.empty` does; its memory may have been another's before."""
    kind = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    if size < LEAST_BYTES or kind.hasobject:
        return np.empty(shape, kind)
    memory = _fitting(size) or _fresh(size)
    array = np.frombuffer(memory, np.uint8, size)
    weakref.finalize(array, _take_back, memory)  # views hold this array, not what holds its bytes
    return array.view(kind).reshape(shape)


@cache
def keep_freed() -> None:
    """Have the C library keep what is freed of arrays of some MB, which it gives back to the system otherwise.

    It does so for the process, once. A C library other than glibc is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _MOST_TRIMMED)
        mallopt(_MMAP_THRESHOLD, _MOST_IN_HEAPS)


def let_go() -> None:
    """Give what no array uses back to the system."""
    _unused.clear()


def unused_bytes() -> int:
    """Return what is kept for arrays to come."""
    return sum(map(len, _unused.copy()))


@cache
def most_unused_bytes() -> int:
    """Return what is kept at most for arrays to come, by the memory that is free when it is first asked for.

    The scores of attention over a thousand words take half a GiB a layer, and there are some such arrays at a time.
    """
    return max(LEAST_KEPT_BYTES, (free_bytes() or 0) // _KEPT_OF_FREE)


def _fitting(size: int) -> mmap.mmap | None:
    """The smallest unused memory that is large enough, and not much larger."""
    with _lock:
        fits = [each for each in _unused.copy() if size <= len(each) <= 2 * size]
        if not fits:
            return None
        found = min(fits, key=len)
        try:
            _unused.remove(found)
        except ValueError:  # let go of meanwhile
            return None
        return found


def _fresh(size: int) -> mmap.mmap:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    most_unused_bytes()  # reads files, which the last view's end is no time for
    return memory


def _take_back(memory: mmap.mmap) -> None:
    """Called where the last view goes, in any thread and at any time: takes no lock."""
    if unused_bytes() + len(memory) <= most_unused_bytes():
        _unused.append(memory)
