"""The process that executes candidates: ``python -m wpk.device.child CALLS MEMORY ORDINAL``.

It answers the calls of `wpk.device.process.GpuProcess`. A process and not a thread, because a kernel
that hangs can only be ended with the process that started it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection

from wpk.device.guarded import GuardedCudaDevice
from wpk.device.measure import measure
from wpk.device.memory import pin
from wpk.device.shared import Segment, SharedSegments
from wpk.device.step_times import step_seconds
from wpk.errors import WpkError
from wpk.execution import Bytes, Predecessors, Replay, Work

_ORPHAN_GRACE_SECONDS = 10


@dataclass(frozen=True)
class Call:
    """One call of a method, with its time limit."""

    method: str
    arguments: tuple[object, ...]
    limit_seconds: float


class _Served:
    """The device and what was captured on it, answering one call after another."""

    def __init__(self, device: GuardedCudaDevice, memory: int) -> None:
        self._device = device
        self._shared = SharedSegments(memory, self._pin)
        self._captured: dict[int, Replay] = {}
        self._numbers = count()

    def answer(self, call: Call) -> object:
        device, arguments = self._device, call.arguments
        match call.method:
            case "facts":
                return device.name, device.capability, device.driver, device.cuda_api, device.facts
            case "write":
                self._write(*arguments)  # type: ignore[arg-type]
                return None
            case "read":
                self._read(*arguments)  # type: ignore[arg-type]
                return None
            case "measure":
                return measure(device, *arguments)  # type: ignore[arg-type]
            case "step_seconds":
                return step_seconds(device, *arguments)  # type: ignore[arg-type]
            case "capture":
                return self._capture(*arguments)  # type: ignore[arg-type]
            case "replay":
                self._captured[arguments[0]].replay()  # type: ignore[index]
                return None
        return getattr(device, call.method)(*arguments)

    def _write(self, address: int, segment: Segment, size: int) -> None:
        self._device.write(address, self._shared.array(segment, size))

    def _read(self, address: int, segment: Segment, size: int) -> None:
        self._device.read(address, size, self._shared.array(segment, size))

    def _pin(self, data: Bytes) -> None:
        with self._device.active():
            pin(data)

    def _capture(
        self, works: Sequence[Work], predecessors: Predecessors | None, unused: Sequence[int]
    ) -> int:
        """The number of a new graph; those that nobody can replay any more go."""
        for number in unused:
            del self._captured[number]
        number = next(self._numbers)
        self._captured[number] = self._device.capture(works, predecessors)
        return number


def serve(
    connection: Connection,
    memory: int,
    ordinal: int,
    open_device: Callable[[int], GuardedCudaDevice] = GuardedCudaDevice,
) -> None:
    """Answer calls until the other end closes; errors are answers.

    Args:
        connection: Where calls come from.
        memory: Descriptor of the `SharedMemory` that tensors come and go in.
        ordinal: Number of the GPU.
        open_device: Opens it.
    """
    served: _Served | None = None
    while True:
        try:
            call: Call = connection.recv()
        except (EOFError, ConnectionResetError):  # the parent is gone, perhaps before it was read
            return
        # The parent kills a child that takes too long; the alarm ends one whose parent is gone.
        signal.alarm(int(call.limit_seconds) + _ORPHAN_GRACE_SECONDS)
        answer: object
        try:
            served = served or _Served(open_device(ordinal), memory)
            answer = served.answer(call)
        except WpkError as error:
            answer = error
        signal.alarm(0)
        try:
            connection.send(answer)
        except (BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    calls, memory, ordinal = map(int, sys.argv[1:])
    serve(Connection(calls), memory, ordinal)
