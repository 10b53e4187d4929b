"""The process that executes candidates: ``python -m wpk.backends.gpu_child``.

It answers the calls of `wpk.backends.gpu_process.GpuProcess`. A process and not a thread, because a kernel
that hangs can only be ended with the process that started it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from wpk.device import (
    CudaDevice,
    GpuFacts,
    MemoryRange,
    Patience,
    Timing,
    measure,
    pin,
    step_seconds,
)
from wpk.execution import Bytes, LibraryImage, Predecessors, Replay, Work
from wpk.libraries import CudaLibraries, LibraryOffer
from wpk.problems import Problem
from wpk.process import Segment, SharedSegments, serve
from wpk.trial import Regime


class GpuService:
    """A device and what was captured on it; what is not here is the device's own."""

    def __init__(self, device: CudaDevice, libraries: CudaLibraries, memory: int) -> None:
        """Begin.

        Args:
            device: What executes.
            libraries: What it calls.
            memory: Descriptor of the `SharedMemory` that tensors come and go in.
        """
        self._device, self._libraries = device, libraries
        self._shared = SharedSegments(memory, self._pin)
        self._captured: dict[int, Replay] = {}
        self._numbers = count()

    def __getattr__(self, name: str) -> Any:
        """A method of the device."""
        return getattr(self._device, name)

    def facts(self) -> GpuFacts:
        """What was read off the GPU."""
        return self._device.facts

    def offer(self, library: str, problem: Problem) -> LibraryOffer:
        """What a library proposes for a problem."""
        return self._libraries.offer(library, problem, self._device)

    def prepare(self, image: LibraryImage) -> int:
        """Make an implementation ready; the bytes of scratch memory that it needs."""
        return self._libraries.load(image, self._device)

    def write(self, address: int, segment: Segment, size: int) -> None:
        """Copy shared memory to the GPU."""
        self._device.write(address, self._shared.array(segment, size))

    def read(self, address: int, segment: Segment, size: int) -> None:
        """Copy from the GPU to shared memory."""
        self._device.read(address, size, self._shared.array(segment, size))

    def capture(
        self, works: Sequence[Work], predecessors: Predecessors | None, unused: Sequence[int]
    ) -> int:
        """The number of a new graph; those that nobody can replay any more go."""
        for number in unused:
            del self._captured[number]
        number = next(self._numbers)
        self._captured[number] = self._device.capture(works, predecessors)
        return number

    def replay(self, number: int) -> None:
        """Start what was captured."""
        self._captured[number].replay()

    def measure(
        self,
        works: Sequence[Work],
        regions: Sequence[MemoryRange],
        regime: Regime,
        patience: Patience,
    ) -> Timing:
        """See `wpk.device.measure`."""
        return measure(self._device, works, regions, regime, patience)

    def step_seconds(self, steps: Sequence[Sequence[Work]]) -> tuple[float, ...]:
        """See `wpk.device.step_seconds`."""
        return step_seconds(self._device, steps)

    def _pin(self, data: Bytes) -> None:
        with self._device.active():
            pin(data)


def _open(memory: str, ordinal: str) -> GpuService:
    libraries = CudaLibraries()
    device = CudaDevice(int(ordinal), libraries=libraries, is_guarded=True)
    return GpuService(device, libraries, int(memory))


if __name__ == "__main__":
    serve(_open)
