"""The child of a `GpuProcess` whose GPU is NumPy: memory only, and launches that take their time.

``python -m support.devices.numpy_child CALLS MEMORY ORDINAL``
"""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import count
from typing import Any, cast

import numpy as np

from support.devices.gpus import H200
from wpk.backends import GpuProcess, gpu_child
from wpk.backends.gpu_child import GpuService
from wpk.dtypes import Precision
from wpk.execution import Bytes
from wpk.libraries import LibraryOffer
from wpk.problems import Convolution
from wpk.process import serve

_SHIFT = 36
"""An allocation's number is in the bits above: far more than one of them can have bytes."""


class NumpyProcess(GpuProcess):
    """A GPU without a GPU; this file's folder has to be in ``PYTHONPATH``."""

    _MODULE = "support.devices.numpy_child"

    def sleep(self, seconds: float) -> None:
        """Keep the child busy."""
        self._tell("sleep", seconds)

    def pinned(self) -> int:
        """Bytes that the child pinned."""
        return self._ask("pinned", answer=int)


class NumpyDevice:
    """Allocations in NumPy."""

    facts = replace(H200, name="NumPy")
    pinned_bytes = 0

    def __init__(self, ordinal: int = 0) -> None:
        del ordinal
        self._memory: dict[int, Bytes] = {}
        self._numbers = count(1)

    def allocate(self, size: int) -> int:
        number = next(self._numbers)
        self._memory[number] = np.zeros(size, np.uint8)
        return number << _SHIFT

    def free(self, address: int) -> None:
        del self._memory[address >> _SHIFT]

    def write(self, address: int, data: Bytes) -> None:
        self._at(address, data.size)[...] = data

    def fill(self, address: int, size: int, byte: int) -> None:
        self._at(address, size)[...] = byte

    def read(self, address: int, size: int, into: Bytes) -> None:
        into[...] = self._at(address, size)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def offer(self, library: str, problem: Convolution, device: object) -> LibraryOffer:
        """Ends the process where it is asked for fp16."""
        if problem.precision is Precision.FP16:
            os._exit(11)
        return LibraryOffer(library, "9.19.0", ((("engine", 7),),), ())

    def active(self) -> AbstractContextManager[None]:
        return nullcontext()

    def pinned(self) -> int:
        return self.pinned_bytes

    def _at(self, address: int, size: int) -> Bytes:
        start = address & ((1 << _SHIFT) - 1)
        return self._memory[address >> _SHIFT][start : start + size]


def _open(memory: str, ordinal: str) -> GpuService:
    device: Any = NumpyDevice(int(ordinal))
    return GpuService(device, device, int(memory))


def _pin(data: Bytes) -> None:
    NumpyDevice.pinned_bytes += data.size


if __name__ == "__main__":
    gpu_child.pin = cast("Any", _pin)
    serve(_open)
