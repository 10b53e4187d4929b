"""Streams of the caller's, and the order between streams: what an engine asks of a GPU beyond launches."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from wpk.errors import EngineError
from wpk.execution import Device, Predecessors, Replay, Work

LEGACY_STREAM = 1
"""The default stream that waits for all blocking streams, as CUDA_DRIVER_API calls ``CU_STREAM_LEGACY``."""


class Mark(Protocol):
    """A point in a stream's work that others can wait for. Used while its device is active."""

    def record(self, stream: int) -> None:
        """Move the mark to behind all that the stream was given so far."""

    def hold(self, stream: int) -> None:
        """What the stream is given from now on waits for the mark."""

    def wait(self) -> None:
        """Wait on the host.

        Raises:
            LaunchError: Something before the mark failed.
        """


class StreamReplay(Replay, Protocol):
    """A replay that can go to any stream."""

    def replay_on(self, stream: int) -> None:
        """Start it on a stream by its handle.

        Raises:
            LaunchError: It cannot be started, or something before it failed.
        """


@runtime_checkable
class StreamDevice(Device, Protocol):
    """A device whose work goes to streams, and that shares its memory with others in the process.

    Attributes:
        ordinal: Its number among the GPUs of the process.
        stream: Handle of the device's own stream; it waits for the legacy default stream and is
            waited for by it.
        current: Entered as `active()` is, again inside too, and faster: around replays, marks and
            calls of the device alone.
    """

    ordinal: int
    stream: int
    current: AbstractContextManager[object]

    def active(self) -> AbstractContextManager[object]:
        """While entered, calls of this thread go to this device, and other threads' wait."""

    def capture(
        self, works: Sequence[Work], predecessors: Predecessors | None = None
    ) -> StreamReplay:
        """See `Device.capture`."""

    def make_mark(self) -> Mark:
        """A mark that nothing waits for yet."""

    def located(self, address: int) -> int | None:
        """Number of the GPU that an address lies on; None where it is no GPU's memory."""

    def copy_on(self, stream: int, source: int, target: int, size: int) -> None:
        """Start to copy bytes on a stream."""

    def settle(self) -> None:
        """Wait for copies, and for work on all streams that take turns with them.

        Raises:
            LaunchError: A kernel failed.
        """


def stream_handle(stream: object) -> int:
    """The driver's handle of a stream.

    Args:
        stream: A handle, or an object with ``__cuda_stream__`` (cuda.core), ``cuda_stream``
            (PyTorch), ``ptr`` (CuPy) or ``handle`` (pycuda).

    Raises:
        EngineError: It is none of these.
    """
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol: Any = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    for name in ("cuda_stream", "ptr", "handle"):
        found = getattr(stream, name, None)
        if isinstance(found, int):
            return found
    raise EngineError(
        f"{type(stream).__name__} is no CUDA stream",
        fix="give its handle as an int, or a stream of pycuda, PyTorch, CuPy or cuda.core",
    )
