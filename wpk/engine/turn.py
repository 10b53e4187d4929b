"""Whose turn it is to use an engine, of several threads, and in which process."""

import os
import threading
from contextlib import AbstractContextManager, nullcontext

from wpk.device import StreamDevice
from wpk.errors import EngineError


class Turn:
    """Entered around what a thread does with an engine: one at a time, with the device's context.

    Attributes:
        lock: Held by the thread whose turn it is.
        is_over: Whether the engine was closed.
        context: The device's.
    """

    def __init__(self, device: StreamDevice | None) -> None:
        """Begin with nobody's turn.

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
        """Whether this is the process that the engine was loaded in, not a fork of it."""
        return os.getpid() == self._process

    def __enter__(self) -> None:
        """Wait for the turn.

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
        """Let the next one."""
        try:
            self.context.__exit__(None, None, None)
        finally:
            self.lock.release()
