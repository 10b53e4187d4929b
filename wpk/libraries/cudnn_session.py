"""What the frontend made, in the order in which it has to go: graphs, the handle, then the context.

A plan whose handle or context has gone calls into what is no longer there when it is destroyed. So
graphs are held in one place, and everybody else has tokens: neither a candidate that somebody keeps,
nor the traceback of an error, nor the end of the interpreter decides when a graph goes.
"""

import gc
import traceback
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any

from wpk.errors import EngineError, LaunchError


class GraphToken:
    """Stands for a graph that a session holds; the graph goes when nobody has its token."""

    def __init__(self, held: dict[int, Any], graph: Any) -> None:
        """Let a session's graphs hold one more."""
        self._held = held
        held[id(self)] = graph
        weakref.finalize(self, held.pop, id(self), None)

    @property
    def graph(self) -> Any:
        """The frontend's graph.

        Raises:
            LaunchError: The session was closed.
        """
        try:
            return self._held[id(self)]
        except KeyError as error:
            raise LaunchError(
                "a cuDNN graph is used after its library was closed",
                fix="ask the library that is open now for a candidate",
            ) from error


class CudnnSession:
    """A handle of cuDNN and the graphs made with it.

    Attributes:
        handle: The frontend's handle, on the GPU whose context is current while it is made.
    """

    def __init__(
        self,
        frontend: Any,
        context: AbstractContextManager[object],
        settle: Callable[[], None],
    ) -> None:
        """Make a handle.

        Args:
            frontend: The module ``cudnn``.
            context: Makes the GPU's context current while it is entered, again and again.
            settle: Waits until what was started has ended, however it ended.

        Raises:
            RuntimeError: CuDNN does not start.
        """
        with context:
            self.handle = frontend.create_handle()
        self._held: dict[int, Any] = {}
        destroy = frontend.destroy_handle
        # Finalizers run newest first: those of graphs, this one, that of the device.
        self.close = weakref.finalize(
            self, _close, context, settle, self._held, destroy, self.handle
        )

    def hold(self, graph: Any) -> GraphToken:
        """Take a graph that nothing else keeps."""
        return GraphToken(self._held, graph)


def words(error: Exception) -> str:
    """Return the first line of an error of the frontend, without its prefix.

    The error lets go of the graph that its frames are about.
    """
    traceback.clear_frames(error.__traceback__)
    text = str(error).strip().splitlines()
    return (text[0] if text else type(error).__name__).removeprefix("[cudnn_frontend] Error: ")


def _close(
    context: AbstractContextManager[object],
    settle: Callable[[], None],
    held: dict[int, Any],
    destroy: Callable[[Any], None],
    handle: Any,
) -> None:
    with ExitStack() as entered:
        with suppress(EngineError):  # its device was closed; the primary context is still there
            entered.enter_context(context)
        settle()  # a plan's code may be running
        held.clear()
        gc.collect()  # what the frontend keeps in cycles
        destroy(handle)
