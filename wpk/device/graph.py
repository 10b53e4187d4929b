"""CUDA graphs, the part of the driver that pycuda lacks: capture a stream's work once, start it often.

cuda-bindings (extra ``gpu``) works on the context that is current, which is pycuda's.
"""

import weakref
from collections.abc import Callable
from typing import Any

from wpk.errors import EngineError, LaunchError


class CudaGraph:
    """What a function put on a stream, as one thing that starts with a single call."""

    def __init__(self, stream: int, enqueue: Callable[[], None]) -> None:
        """Capture.

        Args:
            stream: Handle of the stream that ``enqueue`` works on, and that replays go to.
            enqueue: Puts launches on the stream; nothing executes while it does.

        Raises:
            EngineError: cuda-bindings is not installed.
            LaunchError: Something cannot be captured.
        """
        self._driver = _bindings()
        self._stream = self._driver.CUstream(stream)
        mode = self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._call("begin a graph", self._driver.cuStreamBeginCapture(self._stream, mode))
        try:
            enqueue()
        except BaseException:
            _, graph = self._driver.cuStreamEndCapture(self._stream)
            if int(graph):
                self._driver.cuGraphDestroy(graph)
            raise
        graph = self._call("end a graph", self._driver.cuStreamEndCapture(self._stream))
        try:
            self._executable = self._call("make a graph", self._driver.cuGraphInstantiate(graph, 0))
        finally:
            self._driver.cuGraphDestroy(graph)
        weakref.finalize(self, self._driver.cuGraphExecDestroy, self._executable)

    def replay(self) -> None:
        """Start it; it may still run when this returns.

        Raises:
            LaunchError: It cannot be started, or something before it failed.
        """
        launched = self._driver.cuGraphLaunch(self._executable, self._stream)
        if launched[0]:
            self._call("start a graph", launched)

    def _call(self, what: str, answer: tuple[Any, ...]) -> Any:
        """The value of a driver's answer.

        Raises:
            LaunchError: It is an error.
        """
        status, *values = answer
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise LaunchError(
                f"the driver cannot {what}: {status.name}",
                fix="run the plan with --device cpu, which says which kernel fails and where",
            )
        return values[0] if values else None


def _bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise EngineError(
            f"executing on a GPU needs cuda-bindings, which cannot be imported: {error}",
            fix="pip install 'wpk[gpu]', or use --device cpu",
        ) from error
    return driver
