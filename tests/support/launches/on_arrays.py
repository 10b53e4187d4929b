"""Emulated launches on NumPy's arrays, which stand for the memory of a device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wpk.emulator import FAST, Mode
from wpk.emulator.memory import guarded_buffer
from wpk.emulator.native import Statistics, launch_kernel
from wpk.execution import BoundArgument, BoundLaunch, Pointer
from wpk.launch import EARLY_LAUNCH, NO_CLUSTER

Array = NDArray[np.generic]
Value = Array | BoundArgument


def guarded(array: Array) -> Array:
    """A copy of an array that lies between guard regions; views of it keep them alive."""
    copy = guarded_buffer(array.nbytes).data.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def launch_on_arrays(
    library: Path,
    entry: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_bytes: int,
    arguments: Sequence[Value],
    mode: Mode = FAST,
    *,
    cluster: tuple[int, int, int] = NO_CLUSTER,
    seed: int = 0,
    awaited: Sequence[Array] | None = None,
    attributes: tuple[str, ...] = (),
) -> Statistics:
    """Execute one kernel; it is launched early where memory that it must wait for is given."""
    bound = tuple(map(_bound, arguments))
    named = (*attributes, *(() if awaited is None else (EARLY_LAUNCH,)))
    launch = BoundLaunch("", entry, grid, block, cluster, shared_bytes, bound, named)
    return launch_kernel(library, launch, mode, seed=seed, awaited=awaited or ())


def _bound(value: Value) -> BoundArgument:
    if not isinstance(value, np.ndarray):
        return value
    assert value.flags.c_contiguous
    return Pointer(value.ctypes.data)
