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
from wpk.emulator.memory import pages_of
from wpk.emulator.mode import FAST, Mode
from wpk.execution import BoundArgument, BoundLaunch, Pointer, TensorMap
from wpk.launch import COOPERATIVE, EARLY_LAUNCH

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


class _Pages(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _NativeStatistics(ctypes.Structure):
    _fields_ = [
        ("collectives", ctypes.c_uint64),
        ("phases", ctypes.c_uint64 * len(_ACCESS_KINDS)),
        ("conflicts", ctypes.c_uint64 * len(_ACCESS_KINDS)),
        ("uncounted", ctypes.c_uint64),
    ]

    def read(self) -> Statistics:
        return Statistics(
            collectives=self.collectives,
            phases=dict(zip(_ACCESS_KINDS, self.phases, strict=True)),
            conflicts=dict(zip(_ACCESS_KINDS, self.conflicts, strict=True)),
            uncounted=self.uncounted,
        )


def launch_kernel(
    library: Path,
    launch: BoundLaunch,
    mode: Mode = FAST,
    *,
    seed: int = 0,
    threads: int | None = None,
    awaited: Sequence[npt.NDArray[np.generic]] = (),
) -> Statistics:
    """Execute one kernel over its grid.

    Args:
        library: From `wpk.emulator.build.compile_unit`, with ``checking`` as in ``mode``.
        launch: What is launched. Where it is launched early and the mode orders threads at random,
            every thread must wait for the kernels in front before it ends, and one thread executes.
        mode: Which checks are made.
        seed: Of the random order.
        threads: Operating system threads; all CPUs of this process when not given.
        awaited: Guarded memory that kernels in front of an early launch may touch: a thread that
            touches it must have waited for them.

    Raises:
        EmulatorError: The kernel broke a rule; names block and thread.
    """
    entry = launch.entry
    runtime, function = _runtime(mode.sanitized), _function(library, entry)
    pointers, _storage = _pack(entry, launch.arguments)
    statistics = _NativeStatistics()
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    failed = runtime.wpk_emulator_launch(
        *(function, pointers, *_sizes(launch, mode, seed, threads), *_early(launch, mode, awaited)),
        *(ctypes.byref(statistics), message, ctypes.c_size_t(_MESSAGE_BYTES)),
    )
    if failed:
        raise EmulatorError(
            f"{entry}: {message.value.decode(errors='replace')}",
            fix="this is a bug in the kernel or in its launch; another schedule may not have it",
        )
    return statistics.read()


def _sizes(launch: BoundLaunch, mode: Mode, seed: int, threads: int | None) -> tuple[object, ...]:
    """Grid, block, cluster and shared memory, then how they are executed, as the library takes them."""
    if min(launch.grid) < 1:
        raise EmulatorError(
            f"{launch.entry}: a grid of {launch.grid} blocks", fix="launch at least one block"
        )
    triples = ((ctypes.c_uint32 * 3)(*x) for x in (launch.grid, launch.block, launch.cluster))
    count = threads or len(os.sched_getaffinity(0))
    numbers = map(ctypes.c_uint32, (launch.shared_bytes, count, mode.bits))
    cooperative = ctypes.c_uint32(COOPERATIVE in launch.attributes)
    return *triples, *numbers, ctypes.c_uint64(seed), cooperative


def _early(
    launch: BoundLaunch, mode: Mode, awaited: Sequence[npt.NDArray[np.generic]]
) -> tuple[object, ...]:
    """Whether waiting for kernels in front is checked, and the pages that must not be touched before."""
    checked = EARLY_LAUNCH in launch.attributes and mode.random_order
    pages = [_Pages(*pages_of(array)) for array in awaited]
    places = (_Pages * max(len(pages), 1))(*pages)
    return ctypes.c_uint32(checked), places, ctypes.c_size_t(len(pages))


def _pack(
    entry: str, arguments: Sequence[BoundArgument]
) -> tuple[ctypes.Array[ctypes.c_void_p], object]:
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


def _pack_one(entry: str, index: int, argument: BoundArgument) -> bytes:
    if isinstance(argument, Pointer):
        return struct.pack("<Q", argument.address)
    if isinstance(argument, TensorMap):
        return pack_tensor_map(argument)
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
