"""Large arrays kept in files: of weights no more lies in memory than is being worked on.

A model's external data are mapped where they lie, and arrays that are computed go into temporary files
without a name. The operating system reads what is used, and gives its memory back when others need it.
"""

import math
import mmap
import os
import tempfile
import threading
import weakref
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wpk.errors import EngineError

LARGE_BYTES = 2**20
"""Smaller arrays stay in memory."""

_FILE_BYTES = 2**28
"""Many arrays share a file, since every mapping of one holds a file descriptor."""

_WORTH_MAPPING = 2**26
"""Somebody's file that is smaller is copied: see `MappedFiles.array`."""

_SHARED_PLACE = Path("/var/tmp")
"""Where large temporary files belong; ``/tmp`` often lies in memory."""


_Scalar = TypeVar("_Scalar", bound=np.generic)


class _TemporaryFile:
    """A file without a name that arrays are appended to, mapped as a whole; it is gone with the last of them."""

    def __init__(self, size: int) -> None:
        self._used = 0
        self._size = size
        with tempfile.TemporaryFile(dir=_folder()) as stream:
            stream.truncate(size)
            self._map = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ)
            self._descriptor = os.dup(stream.fileno())
        weakref.finalize(self, os.close, self._descriptor)

    def has_room(self, size: int) -> bool:
        return self._used + size <= self._size

    def reserve(self, size: int) -> int:
        """The first byte of a place for so many, which nobody else is given."""
        start = self._used
        self._used += -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        return start

    def write(self, start: int, array: NDArray[_Scalar]) -> NDArray[_Scalar]:
        """Write a contiguous array into its place, and return it as it lies there, read-only."""
        data, done = array.reshape(-1).view(np.uint8).data, 0
        while done < len(data):
            done += os.pwrite(self._descriptor, data[done:], start + done)
        return np.frombuffer(self._map, array.dtype, array.size, start).reshape(array.shape)


_open_files: dict[int, _TemporaryFile] = {}
"""The file that the next arrays go into, of this process: one that was forked off writes its own."""

_reserving = threading.Lock()
os.register_at_fork(
    before=_reserving.acquire,
    after_in_parent=_reserving.release,
    after_in_child=_reserving.release,
)


def in_file(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return an array that is read-only and lies in a file, or the array itself if it is not large.

    Raises:
        EngineError: There is no room for temporary files.
    """
    if array.nbytes < LARGE_BYTES or _lies_in_file(array):
        return array
    array = np.ascontiguousarray(array)
    process = os.getpid()
    try:
        with _reserving:
            file = _open_files.get(process)
            if file is None or not file.has_room(array.nbytes):
                file = _TemporaryFile(max(_FILE_BYTES, array.nbytes + mmap.PAGESIZE))
                _open_files.clear()
                _open_files[process] = file
            start = file.reserve(array.nbytes)
        return file.write(start, array)
    except OSError as error:
        raise EngineError(
            f"a temporary file of {array.nbytes / 2**20:.0f} MiB cannot be written in {_folder()}: "
            f"{error.strerror or error}",
            fix="make room there, or set TMPDIR to a folder on a disk with room for the weights",
        ) from error


class MappedFiles:
    """Somebody's files as far as arrays are asked for; they are not to be changed as long as these are used."""

    def __init__(self) -> None:
        """Begin with none."""
        self._maps: dict[Path, mmap.mmap] = {}

    def array(
        self, path: Path, offset: int, dtype: np.dtype, shape: tuple[int, ...]
    ) -> NDArray[np.generic]:
        """Return an array that is read-only and lies in a file.

        A file of its own for each array, as some exporters write them, is copied unless it is large: a
        mapping would cost a descriptor for each.

        Args:
            path: The file.
            offset: First byte of the array.
            dtype: Type of its elements.
            shape: Its shape, without a zero.

        Raises:
            OSError: The file cannot be read.
            ValueError: The array does not lie in the file.
        """
        count = math.prod(shape)
        end, size = offset + count * dtype.itemsize, path.stat().st_size
        if end > size:
            raise ValueError(f"{path} has {size} bytes, and an array ends at byte {end}")
        if size < _WORTH_MAPPING:
            return in_file(np.fromfile(path, dtype, count, offset=offset).reshape(shape))
        if path not in self._maps:
            with path.open("rb") as stream:
                self._maps[path] = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(self._maps[path], dtype, count, offset).reshape(shape)


def _lies_in_file(array: NDArray[np.generic]) -> bool:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, mmap.mmap) and array.flags.c_contiguous


def _folder() -> str:
    chosen = os.environ.get("TMPDIR")
    if not chosen and os.access(_SHARED_PLACE, os.W_OK):
        chosen = str(_SHARED_PLACE)
    return chosen or tempfile.gettempdir()
