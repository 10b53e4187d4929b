"""What pycuda lacks of the driver: graphs, and marks on streams of the caller's.

A graph captures a stream's work once, to start it often. When the process ends it is the device that
gives graphs and marks up, after it has waited for them: their own finalizers would come before that.
cuda-bindings (extra ``gpu``) works on the context that is current, which is pycuda's.
"""

import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from wpk.device.packages import INSTALL_GPU_PACKAGES
from wpk.errors import EngineError, LaunchError


class CudaGraph:
    """What a function put on a stream, as one thing that starts with a single call."""

    def __init__(
        self, stream: int, enqueue: Callable[[], None], *, replays_on: int | None = None
    ) -> None:
        """Capture.

        Args:
            stream: Handle of the stream that ``enqueue`` works on.
            enqueue: Puts launches on the stream; nothing executes while it does.
            replays_on: Handle of the stream that replays go to; ``stream`` itself by default.

        Raises:
            EngineError: cuda-bindings is not installed.
            LaunchError: Something cannot be captured.
        """
        self._driver = bindings()
        self._stream = stream if replays_on is None else replays_on
        mode = self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        checked("begin a graph", self._driver.cuStreamBeginCapture(stream_object(stream), mode))
        try:
            enqueue()
        except BaseException:
            _, graph = self._driver.cuStreamEndCapture(stream_object(stream))
            if graph is not None and int(graph):  # none is left of one that was broken off
                self._driver.cuGraphDestroy(graph)
            raise
        graph = checked("end a graph", self._driver.cuStreamEndCapture(stream_object(stream)))
        try:
            self._executable = checked("make a graph", self._driver.cuGraphInstantiate(graph, 0))
        finally:
            self._driver.cuGraphDestroy(graph)
        self._launch = self._driver.cuGraphLaunch
        self.close = weakref.finalize(self, self._driver.cuGraphExecDestroy, self._executable)
        self.close.atexit = False

    def replay(self) -> None:
        """Start it; it may still run when this returns.

        Raises:
            LaunchError: It cannot be started, or something before it failed.
        """
        self.replay_on(self._stream)

    def replay_on(self, stream: int) -> None:
        """Start it on another stream, by its handle.

        Raises:
            LaunchError: It cannot be started, or something before it failed.
        """
        launched = self._launch(self._executable, stream_object(stream))
        if launched[0]:
            checked("start a graph", launched)


class CudaMark:
    """An event: see `wpk.device.streams.Mark`. It takes no time stamps, which would cost some."""

    def __init__(self) -> None:
        """Make the event.

        Raises:
            EngineError: cuda-bindings is not installed.
            LaunchError: The driver makes none.
        """
        self._driver = bindings()
        flag = self._driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        self._event = checked("make an event", self._driver.cuEventCreate(flag))
        self.close = weakref.finalize(self, self._driver.cuEventDestroy, self._event)
        self.close.atexit = False

    def record(self, stream: int) -> None:
        """See `wpk.device.streams.Mark.record`."""
        answer = self._driver.cuEventRecord(self._event, stream_object(stream))
        if answer[0]:
            checked("mark a stream", answer)

    def hold(self, stream: int) -> None:
        """See `wpk.device.streams.Mark.hold`."""
        answer = self._driver.cuStreamWaitEvent(stream_object(stream), self._event, 0)
        if answer[0]:
            checked("order two streams", answer)

    def wait(self) -> None:
        """See `wpk.device.streams.Mark.wait`."""
        answer = self._driver.cuEventSynchronize(self._event)
        if answer[0]:
            checked("finish its work", answer)


@lru_cache(maxsize=64)
def stream_object(handle: int) -> Any:
    """cuda-bindings' stream of a handle."""
    return bindings().CUstream(handle)


def checked(what: str, answer: tuple[Any, ...]) -> Any:
    """The value of a driver's answer.

    Raises:
        LaunchError: It is an error.
    """
    status, *values = answer
    if int(status):
        raise LaunchError(
            f"the driver cannot {what}: {status.name}",
            fix="run the plan with --device cpu, which says which kernel fails and where",
        )
    return values[0] if values else None


def bindings() -> Any:
    """cuda-bindings' driver.

    Raises:
        EngineError: It is not installed.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise EngineError(
            f"executing on a GPU needs cuda-bindings, which cannot be imported: {error}",
            fix=f"{INSTALL_GPU_PACKAGES}; or use --device cpu",
        ) from error
    return driver
