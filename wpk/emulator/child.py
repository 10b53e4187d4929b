"""The emulator in a process of its own: a kernel that hangs, crashes or tramples costs only that.

`EmulatorProcess` is the same device as `Emulator`. Requests and answers are pickled frames on the
child's standard input and output; the child serves them in ``python -m wpk.emulator.child``.
"""

import os
import pickle
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from wpk.emulator.emulator import Emulator
from wpk.emulator.errors import EmulatorError, EmulatorTimeoutError
from wpk.emulator.memory import Bytes
from wpk.emulator.mode import FAST, Mode
from wpk.emulator.native import Statistics
from wpk.errors import WpkError
from wpk.execution import (
    BoundCall,
    BoundLaunch,
    Image,
    KernelsOnly,
    LibraryImage,
    OneByOne,
    Predecessors,
    Work,
)

_LENGTH = struct.Struct("<Q")
_START_SECONDS = 60.0  # for the interpreter and numpy on a loaded machine
_PARENT_POLL_SECONDS = 0.5


class EmulatorProcess(KernelsOnly):
    """An `Emulator` in a child process, each launch within a time limit.

    After an error other than a kernel's own (time limit, crash, interrupt) the child is gone and so is
    its memory: make a new one. Use it as a context manager, or call `close`.

    Attributes:
        name: What a report calls it.
        mode: Which checks every launch makes.
        time_limit_seconds: Of one launch.
        statistics: What the last launch did.
    """

    name = Emulator.name
    executes_source = Emulator.executes_source

    def __init__(
        self,
        mode: Mode = FAST,
        *,
        time_limit_seconds: float = 60.0,
        seed: int = 0,
        threads: int | None = None,
        cache: Path | None = None,
    ) -> None:
        """Start the child; the arguments but the time limit are those of `Emulator`."""
        self.mode = mode
        self.time_limit_seconds = time_limit_seconds
        self.statistics: Statistics | None = None
        self._builder = Emulator(mode, cache=cache)
        self._sent: set[str] = set()
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "wpk.emulator.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # an interrupt is the parent's to handle: it ends the child
        )
        try:
            self._builder.prepare()
            self._call("start", (mode, seed, threads, os.getpid()), _START_SECONDS)
        except BaseException:  # an interrupt too: nobody else could end the child
            self.close()
            raise

    def __enter__(self) -> "EmulatorProcess":
        """Nothing more to do: the child runs."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # half a request may wait to be sent
                    pipe.close()

    def load(self, image: Image) -> None:
        """Compile a kernel, here and in the background: the time limit is for executing it.

        Raises:
            EngineError: It is a library's.
        """
        if isinstance(image, LibraryImage):
            self.load_library(image)
        else:
            self._builder.load(image)

    def allocate(self, size: int) -> int:
        """See `Emulator.allocate`; the address is one of the child's."""
        return cast("int", self._call("allocate", (size,)))

    def free(self, address: int) -> None:
        """See `Emulator.free`. The memory of a child that has ended is free already."""
        if self._child.poll() is None:
            self._call("free", (address,))

    def write(self, address: int, data: Bytes) -> None:
        """See `Emulator.write`."""
        self._call("write", (address, data))

    def fill(self, address: int, size: int, byte: int) -> None:
        """See `Emulator.fill`."""
        self._call("fill", (address, size, byte))

    def read(self, address: int, size: int) -> Bytes:
        """See `Emulator.read`."""
        return cast("Bytes", self._call("read", (address, size)))

    def launch(self, work: Work) -> None:
        """Execute a kernel to its end.

        Raises:
            EmulatorTimeoutError: It took longer than the time limit; the child is gone.
            EmulatorError: It broke a rule, or crashed the child, which then is gone.
            CompileError: It does not compile.
        """
        if isinstance(work, BoundCall):
            self.call_library(work)
        else:
            self._launch(work)

    def _launch(self, launch: BoundLaunch) -> None:
        if launch.kernel not in self._sent:
            library = self._builder.library(launch.kernel)
            self._call("take_built", (launch.kernel, library))
            self._sent.add(launch.kernel)
        self.statistics = cast("Statistics", self._call("launch", (launch,)))

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> OneByOne:
        """Work to be executed together: one after the other, as it is given."""
        return OneByOne(self, works)

    def synchronize(self) -> None:
        """Nothing to wait for: a launch returns when its kernel has ended."""

    def _call(self, method: str, arguments: tuple[object, ...], limit: float = 0.0) -> object:
        child = self._child
        limit = limit or self.time_limit_seconds
        if child.poll() is not None or child.stdin is None or child.stdout is None:
            raise EmulatorError("the emulator's process has ended", fix="start a new one")
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            child.kill()

        timer = threading.Timer(limit, expire)
        timer.daemon = True  # an interrupt may keep it from being cancelled
        try:
            timer.start()
            _send(child.stdin, (method, arguments))
            answer = _receive(child.stdout)
        except (OSError, EOFError) as error:
            raise self._died(method, limit if expired.is_set() else None) from error
        except BaseException:  # an interrupt: the next answer would be one to this request
            child.kill()
            child.wait()
            raise
        finally:
            timer.cancel()
        if isinstance(answer, WpkError):
            raise answer
        return answer

    def _died(self, method: str, limit: float | None) -> EmulatorError:
        status = self._child.wait()
        if limit is not None:
            return EmulatorTimeoutError(
                f"{method} did not end within {limit:g} s",
                fix="another schedule may not hang; for a large problem, allow more time",
            )
        return EmulatorError(
            f"the emulator's process died in {method} (status {status})",
            fix="execute with checks (CHECKING) to learn where the kernel tramples on memory",
        )


def _send(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, protocol=5)
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    header = pipe.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def _watch_parent(parent: int) -> None:
    """End with the parent, even when a kernel hangs and the parent was killed."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_SECONDS)
    os._exit(1)


def _serve() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write into the answers
    emulator = Emulator()
    while True:
        try:
            method, arguments = _receive(requests)
        except EOFError:
            return
        answer: object
        try:
            if method == "start":
                mode, seed, threads, parent = arguments
                emulator, answer = Emulator(mode, seed=seed, threads=threads), None
                threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()
            else:
                answer = getattr(emulator, method)(*arguments)
                answer = emulator.statistics if method == "launch" else answer
        except WpkError as error:
            answer = error
        _send(answers, answer)


if __name__ == "__main__":
    _serve()
