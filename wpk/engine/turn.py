"""Which of several threads may use an engine now, and in which process."""

import os
import threading
from contextlib import AbstractContextManager, nullcontext

from wpk.device import StreamDevice
from wpk.errors import EngineError


class Turn:
    """A context manager around what a thread does with an engine: one thread at a time, in the device's context.

    Attributes:
        lock: Held by the thread whose turn it is.
        is_over: Whether the engine was closed.
        context: The device's.
    """

    def __init__(self, device: StreamDevice | None) -> None:
        """Begin while no thread uses the engine.

        Args:
            device: Where it has streams; it is made the current one.
        """
        self.lock = threading.RLock()
        self.is_over = False
        self._process = os.getpid()
        self.context: AbstractContextManager[object] = (
            nullcontext() if device is None else device.current
        )

    @property
    def is_ours(self) -> bool:
        """Tell whether this is the process in which the engine was loaded, not a fork of it."""
        return os.getpid() == self._process

    def __enter__(self) -> None:
        """Wait until no other thread uses the engine.

        Raises:
            EngineError: The engine was closed, or belongs to another process.
        """
        if not self.is_ours:  # even the lock may be held by a thread that is not here
            raise EngineError(
                "the engine was loaded before this process was forked off, and its device is the "
                "other process's",
                fix="load the plan in the process that runs it",
            )
        self.lock.acquire()
        try:
            if self.is_over:
                raise EngineError("the engine was closed", fix="load the plan again")
            self.context.__enter__()
        except BaseException:
            self.lock.release()
            raise

    def __exit__(self, *error: object) -> None:
        """Let the next thread use the engine."""
        try:
            self.context.__exit__(None, None, None)
        finally:
            self.lock.release()
