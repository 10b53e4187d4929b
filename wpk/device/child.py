"""The process that executes candidates: ``python -m wpk.device.child DESCRIPTOR ORDINAL``.

It answers the calls of `wpk.device.process.GpuProcess`. A process and not a thread, because a kernel
that hangs can only be ended with the process that started it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from wpk.device.guarded import GuardedCudaDevice
from wpk.device.measure import measure
from wpk.device.step_times import step_seconds
from wpk.errors import WpkError

_ORPHAN_GRACE_SECONDS = 10


@dataclass(frozen=True)
class Call:
    """One call of a method, with its time limit."""

    method: str
    arguments: tuple[object, ...]
    limit_seconds: float


def serve(
    connection: Connection,
    ordinal: int,
    open_device: Callable[[int], GuardedCudaDevice] = GuardedCudaDevice,
) -> None:
    """Answer calls until the other end closes; errors are answers."""
    device: GuardedCudaDevice | None = None
    while True:
        try:
            call: Call = connection.recv()
        except EOFError:
            return
        # The parent kills a child that takes too long; the alarm ends one whose parent is gone.
        signal.alarm(int(call.limit_seconds) + _ORPHAN_GRACE_SECONDS)
        answer: object
        try:
            device = device or open_device(ordinal)
            answer = _answer(device, call)
        except WpkError as error:
            answer = error
        signal.alarm(0)
        try:
            connection.send(answer)
        except BrokenPipeError:
            return


def _answer(device: GuardedCudaDevice, call: Call) -> object:
    if call.method == "facts":
        return device.name, device.capability, device.driver, device.cuda_api, device.facts
    if call.method == "measure":
        return measure(device, *call.arguments)  # type: ignore[arg-type]
    if call.method == "step_seconds":
        return step_seconds(device, *call.arguments)  # type: ignore[arg-type]
    return getattr(device, call.method)(*call.arguments)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), int(sys.argv[2]))
