"""The child's side of `wpk.emulator.child`: ``python -m wpk.emulator.serve`` executes what it is asked."""

import os
import resource
import sys
import threading
import time

from wpk.emulator.emulator import Emulator
from wpk.emulator.errors import EmulatorError
from wpk.emulator.frames import Answer, BrokenFrameError, receive_request, send_answer
from wpk.emulator.memory import Bytes
from wpk.emulator.native import take_runtime
from wpk.errors import WpkError

_PARENT_POLL_SECONDS = 0.5


def serve() -> None:
    """Answer requests until the parent closes its end."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write into the answers
    resource.setrlimit(
        resource.RLIMIT_CORE, (0, 0)
    )  # a kernel that crashes leaves no image of memory
    emulator = Emulator()
    while True:
        try:
            method, arguments, data = receive_request(requests)
        except BrokenFrameError:
            return
        try:
            if method == "start":
                mode, seed, threads, runtime, parent = arguments
                take_runtime(runtime, sanitized=mode.sanitized)
                emulator, answer = Emulator(mode, seed=seed, threads=threads), Answer()
                threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()
            else:
                answer = _execute(emulator, method, arguments, data)
        except WpkError as error:
            answer = Answer(error=error)
        except (MemoryError, OSError) as error:
            what = f"{method} failed: {str(error) or type(error).__name__}"
            answer = Answer(error=EmulatorError(what, fix="free memory on this machine"))
        send_answer(answers, answer)


def _execute(emulator: Emulator, method: str, arguments: tuple[object, ...], data: Bytes) -> Answer:
    match method:
        case "write":
            emulator.write(*arguments, data)  # type: ignore[call-arg,arg-type]  # as the parent sent it
            return Answer()
        case "read":
            return Answer(data=emulator.read(*arguments))  # type: ignore[arg-type]
    result = getattr(emulator, method)(*arguments)
    if method == "launch":
        return Answer(statistics=emulator.statistics)
    return Answer(number=result or 0)


def _watch_parent(parent: int) -> None:
    """End with the parent, even when a kernel hangs and the parent was killed."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    serve()
