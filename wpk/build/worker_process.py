"""The pool's side of one compiling process."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from multiprocessing.connection import Pipe

from wpk.build.task import Answer, Task


class WorkerProcess:
    """A started worker, and the task it works on.

    Attributes:
        connection: Becomes readable when the worker has answered or died.
        task: The last task sent.
        deadline: When the task's time is up, on `time.monotonic`'s clock.
    """

    task: Task

    def __init__(self) -> None:
        """Start the process.

        A fresh interpreter and not multiprocessing's spawn, which would import the caller's main
        module; in a session of its own, so that Ctrl-C reaches the pool alone, which then ends it.
        """
        self.connection, theirs = Pipe()
        self.deadline = float("inf")
        self._sent = time.monotonic()
        with theirs:
            self._process = subprocess.Popen(  # -P: the user's folder is not on the import path
                [sys.executable, "-P", "-m", "wpk.build.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def send(self, task: Task) -> None:
        """Give it a task; the time limit starts to run."""
        self.task = task
        self._sent = time.monotonic()
        self.deadline = self._sent + task.limit_seconds
        with contextlib.suppress(BrokenPipeError):  # it died meanwhile: receive() will say so
            self.connection.send(task)

    def receive(self) -> Answer | None:
        """Its answer; None where it has died or not answered."""
        try:
            answer: Answer | None = self.connection.recv() if self.connection.poll() else None
        except (EOFError, ConnectionResetError):
            self._process.wait()
            return None
        return answer

    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def elapsed(self) -> float:
        """Seconds since the task was sent."""
        return time.monotonic() - self._sent

    def end(self) -> str:
        """Kill the process and wait for it; say how it ended."""
        self._process.kill()
        code = self._process.wait()
        self.connection.close()
        return f"signal {-code}" if code < 0 else f"exit code {code}"
