"""The process that compiles: ``python -m wpk.build.worker DESCRIPTOR``, started by the pool.

A process and not a thread, because a compiler that hangs can only be ended by ending its process.
It imports nothing heavy, so that one starts in a tenth of a second.
"""

from __future__ import annotations

import signal
import sys
import time
from multiprocessing.connection import Connection

from wpk.build.compiled import CompiledKernel
from wpk.build.nvrtc import load_nvrtc
from wpk.build.task import Answer, Task
from wpk.errors import WpkError

_ORPHAN_GRACE_SECONDS = 5


def serve(connection: Connection) -> None:
    """Answer tasks until the other end closes."""
    while True:
        try:
            task: Task = connection.recv()
        except (EOFError, ConnectionResetError):  # the pool is gone, perhaps before it was read
            return
        # The pool kills a worker that takes too long; the alarm ends one whose pool is gone.
        signal.alarm(int(task.limit_seconds) + _ORPHAN_GRACE_SECONDS)
        answer = _compile(task)
        signal.alarm(0)
        try:
            connection.send(answer)
        except (BrokenPipeError, ConnectionResetError):
            return


def _compile(task: Task) -> Answer:
    start = time.perf_counter()
    kernel: CompiledKernel | None = None
    failure: WpkError | None = None
    try:
        kernel = load_nvrtc(task.library).compile(task.source, task.arch)
    except WpkError as error:
        failure = error
    return Answer(kernel, failure, time.perf_counter() - start)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
