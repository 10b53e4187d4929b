"""The pool's side of one compiling process."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from multiprocessing.connection import Pipe

from wpk.build.task import Answer, Task


class WorkerProcess:
    """A started worker, which answers one task at a time."""

    def __init__(self) -> None:
        """Start the process.

        A fresh interpreter and not multiprocessing's spawn, which would import the caller's main
        module; in a session of its own, so that Ctrl-C reaches the pool alone, which then ends it.
        """
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # -P: the user's folder is not on the import path
                [sys.executable, "-P", "-m", "wpk.build.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def answer(self, task: Task) -> Answer | None:
        """Its answer to a task; None where it has died or not answered within the task's limit."""
        with contextlib.suppress(BrokenPipeError):  # it died before: receiving says so
            self._connection.send(task)
        try:
            if not self._connection.poll(task.limit_seconds):
                return None
            answer: Answer = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.wait()
            return None
        return answer

    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process, whatever it is doing; who waits for its answer gets none."""
        self._process.kill()

    def end(self) -> str:
        """Kill the process and wait for it; say how it ended."""
        self._process.kill()
        code = self._process.wait()
        self._connection.close()
        return f"signal {-code}" if code < 0 else f"exit code {code}"
