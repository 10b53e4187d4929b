"""A process that does jobs one after the other, and is ended where one hangs.

What a worker runs may hang it, crash it, or leave it in any state; whoever asks only loses that job.
"""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

Job = TypeVar("Job")
Settings = TypeVar("Settings")

Serve = Callable[[Connection, Settings], None]
"""Says `READY`, then answers every job received, until the connection is closed."""

READY = "ready"

START_SECONDS = 400.0
MOST_JOBS = 400
"""A worker that did so many is replaced: libraries that were loaded are never given back."""


class Worker(Generic[Job, Settings]):
    """A process, started when it is needed.

    Attributes:
        job: What it is doing; None where it is idle.
        began: When it began that, or began to start.
        is_ready: Whether it has started.
    """

    def __init__(self, serve: Serve[Settings], settings: Settings, core: int | None = None) -> None:
        """Nothing is started yet.

        Args:
            serve: What the process does.
            settings: For it.
            core: The only one that it may use, with everything that it starts.
        """
        self._core = core
        self._serve, self._settings = serve, settings
        self._process: Any = None
        self._end: Connection | None = None
        self._done = 0
        self.job: Job | None = None
        self.began = 0.0
        self.is_ready = False

    @property
    def connection(self) -> Connection:
        """What becomes ready when the job is done, or the process has died."""
        assert self._end is not None
        return self._end

    def give(self, job: Job) -> None:
        """Begin a job."""
        if self._process is None or self._done >= MOST_JOBS:
            self.close()
            context = multiprocessing.get_context("spawn")
            self._end, other = context.Pipe()
            self._process = context.Process(target=self._serve, args=(other, self._settings))
            self._process.start()
            if self._core is not None:
                os.sched_setaffinity(self._process.pid, {self._core})
            other.close()
            self._done = 0
        self.job, self.began = job, time.monotonic()
        self._done += 1
        self.connection.send(job)

    def take(self) -> Any:
        """The answer; `READY` where the process has only started.

        Raises:
            EOFError: The process died; it is replaced at the next job.
            RuntimeError: It did not even start: no fault of the job.
        """
        try:
            answer = self.connection.recv()
        except (EOFError, ConnectionResetError):
            code, was_ready = self._code(), self.is_ready
            self.close()
            if not was_ready:
                raise RuntimeError(f"a worker ended with {code} before its first job") from None
            raise EOFError(f"the process ended with {code}") from None
        if answer == READY:
            self.is_ready, self.began = True, time.monotonic()
        else:
            self.job = None
        return answer

    def _code(self) -> object:
        self._process.join(5)
        return self._process.exitcode

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.connection.close()
        self._process, self._end, self.job = None, None, None
        self.is_ready = False
