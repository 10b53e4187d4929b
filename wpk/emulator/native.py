"""Call a built kernel through the runtime library, with arguments as ``cuLaunchKernel`` takes them."""

import ctypes
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wpk.emulator import sanitizers
from wpk.emulator.arguments import pack_tensor_map
from wpk.emulator.build import runtime_library
from wpk.emulator.errors import EmulatorError
from wpk.emulator.memory import DeviceBuffer, pages_of
from wpk.emulator.mode import FAST, Mode
from wpk.execution import Pointer, TensorMap

_ACCESS_KINDS = ("load", "store", "matrix_load", "copy")  # enum AccessKind in runtime/state.h
_ARGUMENT_BYTES = 128  # of the largest value, a tensor map, which asks for an alignment of 64
_MESSAGE_BYTES = 512
_INT32_MAXIMUM = 2**31 - 1

_taken: dict[bool, Path] = {}


@dataclass(frozen=True)
class Statistics:
    """What a launch did.

    Attributes:
        collectives: Operations for which the lanes of a warp met.
        phases: Passes that shared-memory accesses need without conflicts, by kind of access
            (``load`` and ``store`` of vector.cuh, ``matrix_load``, ``copy``). Counted only when the
            mode asks for it, like the next two.
        conflicts: Passes that bank conflicts add, by kind of access.
        uncounted: Accesses that the log had no room for.
    """

    collectives: int
    phases: dict[str, int]
    conflicts: dict[str, int]
    uncounted: int


Value = Pointer | DeviceBuffer | npt.NDArray[np.generic] | int | float | TensorMap
"""A kernel argument: memory (passed by address), an int32, a float, a tensor map."""


class _Pages(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _NativeStatistics(ctypes.Structure):
    _fields_ = [
        ("collectives", ctypes.c_uint64),
        ("phases", ctypes.c_uint64 * len(_ACCESS_KINDS)),
        ("conflicts", ctypes.c_uint64 * len(_ACCESS_KINDS)),
        ("uncounted", ctypes.c_uint64),
    ]


def launch_kernel(
    library: Path,
    entry: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_bytes: int,
    arguments: Sequence[Value],
    mode: Mode = FAST,
    *,
    cluster: tuple[int, int, int] = (1, 1, 1),
    seed: int = 0,
    threads: int | None = None,
    awaited: Sequence[npt.NDArray[np.generic]] | None = None,
) -> Statistics:
    """Execute one kernel over its grid.

    Args:
        library: From `wpk.emulator.build.compile_unit`, with ``checking`` as in ``mode``.
        entry: Name of the kernel.
        grid: Blocks along x, y, z.
        block: Threads along x, y, z.
        shared_bytes: Dynamic shared memory of a block.
        arguments: The kernel's parameters in order.
        mode: Which checks are made.
        cluster: Blocks of a cluster along x, y, z.
        seed: Of the random order.
        threads: Operating system threads; all CPUs of this process when not given.
        awaited: Given where the kernel is launched early and the mode orders threads at random:
            guarded memory that kernels in front may touch. A thread that touches it must have
            waited for them, and every thread must wait before it ends. One thread executes.

    Raises:
        EmulatorError: The kernel broke a rule; names block and thread.
    """
    runtime, function = _runtime(mode.sanitized), _function(library, entry)
    if min(grid) < 1:
        raise EmulatorError(f"{entry}: a grid of {grid} blocks", fix="launch at least one block")
    pointers, _storage = _pack(entry, arguments)
    checks_early = awaited is not None and mode.random_order
    pages = [_Pages(*pages_of(array)) for array in awaited or ()]
    statistics = _NativeStatistics()
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    failed = runtime.wpk_emulator_launch(
        function,
        pointers,
        (ctypes.c_uint32 * 3)(*grid),
        (ctypes.c_uint32 * 3)(*block),
        (ctypes.c_uint32 * 3)(*cluster),
        ctypes.c_uint32(shared_bytes),
        ctypes.c_uint32(threads or len(os.sched_getaffinity(0))),
        ctypes.c_uint32(mode.bits),
        ctypes.c_uint64(seed),
        ctypes.c_uint32(checks_early),
        (_Pages * max(len(pages), 1))(*pages),
        ctypes.c_size_t(len(pages)),
        ctypes.byref(statistics),
        message,
        ctypes.c_size_t(_MESSAGE_BYTES),
    )
    if failed:
        raise EmulatorError(
            f"{entry}: {message.value.decode(errors='replace')}",
            fix="this is a bug in the kernel or in its launch; another schedule may not have it",
        )
    return Statistics(
        collectives=statistics.collectives,
        phases=dict(zip(_ACCESS_KINDS, statistics.phases, strict=True)),
        conflicts=dict(zip(_ACCESS_KINDS, statistics.conflicts, strict=True)),
        uncounted=statistics.uncounted,
    )


def _pack(entry: str, arguments: Sequence[Value]) -> tuple[ctypes.Array[ctypes.c_void_p], object]:
    """Pointers to the values, and the memory that holds them; every value is 128-byte aligned."""
    storage = np.zeros((len(arguments) + 1) * _ARGUMENT_BYTES, np.uint8)
    first = -storage.ctypes.data % _ARGUMENT_BYTES
    pointers = (ctypes.c_void_p * max(len(arguments), 1))()
    for index, argument in enumerate(arguments):
        packed = _pack_one(entry, index, argument)
        start = first + index * _ARGUMENT_BYTES
        storage[start : start + len(packed)] = np.frombuffer(packed, np.uint8)
        pointers[index] = storage.ctypes.data + start
    return pointers, storage


def _pack_one(entry: str, index: int, argument: Value) -> bytes:
    if isinstance(argument, Pointer | DeviceBuffer):
        return struct.pack("<Q", argument.address)
    if isinstance(argument, np.ndarray):
        if not argument.flags.c_contiguous:
            raise EmulatorError(
                f"{entry}: argument {index} is not contiguous", fix="pass a contiguous array"
            )
        return struct.pack("<Q", argument.ctypes.data)
    if isinstance(argument, TensorMap):
        return pack_tensor_map(argument)
    if isinstance(argument, float):
        return struct.pack("<f", argument)
    if not -_INT32_MAXIMUM - 1 <= argument <= _INT32_MAXIMUM:
        raise EmulatorError(
            f"{entry}: argument {index} is {argument}, which is no int32",
            fix="make the model's tensors smaller than 2^31 elements",
        )
    return struct.pack("<i", argument)


def take_runtime(library: Path, *, sanitized: bool) -> None:
    """Use a runtime library that another process found or built."""
    _taken[sanitized] = library


@cache
def _runtime(sanitized: bool) -> ctypes.CDLL:
    """Loaded for all to see: kernels resolve its functions when they are loaded."""
    if sanitized:
        sanitizers.require()
    library = _taken.get(sanitized) or runtime_library(sanitized=sanitized)
    return ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


@cache
def _library(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise EmulatorError(
            f"cannot load {path}: {error}", fix="delete it: it is rebuilt when needed"
        ) from error


@cache
def _function(library: Path, entry: str) -> ctypes.c_void_p:
    name = f"{entry}_emulated"
    try:
        return ctypes.cast(getattr(_library(library), name), ctypes.c_void_p)
    except AttributeError as error:
        raise EmulatorError(
            f"{library} has no function {name}",
            fix=f"end the kernel's unit with WPK_EXPORT({entry})",
        ) from error
