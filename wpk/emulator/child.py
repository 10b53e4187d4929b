"""The emulator in a process of its own: a kernel that hangs, crashes or tramples costs only that.

`EmulatorProcess` is the same device as `Emulator`. Requests and answers are frames on the child's standard
input and output (`wpk.emulator.frames`); the child serves them in ``python -m wpk.emulator.serve``.
"""

import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from wpk.emulator import sanitizers
from wpk.emulator.build import runtime_library
from wpk.emulator.emulator import Emulator
from wpk.emulator.errors import EmulatorError, EmulatorTimeoutError
from wpk.emulator.frames import Answer, receive_answer, send_request
from wpk.emulator.memory import Bytes
from wpk.emulator.mode import FAST, Mode
from wpk.emulator.native import Statistics
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

_START_SECONDS = 60.0  # for the interpreter and numpy on a loaded machine


class EmulatorProcess(KernelsOnly):
    """An `Emulator` in a child process, each launch within a time limit.

    After an error other than a kernel's own (time limit, crash, interrupt) the child is gone and so is
    its memory: make a new one. Use it as a context manager, or call `close`.

    Attributes:
        name: What a report calls it.
        mode: Which checks every launch makes.
        time_limit_seconds: Of one launch.
        patience: How many times longer a launch may take at the moment.
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
        self.patience = 1.0
        self.statistics: Statistics | None = None
        self._builder = Emulator(mode, cache=cache)
        self._sent: set[str] = set()
        self._reports = sanitizers.open_reports(self) if mode.sanitized else None
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "wpk.emulator.serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._reports,
            env=sanitizers.environment() if mode.sanitized else None,
            process_group=0,  # an interrupt is the parent's to handle: it ends the child
        )
        self._end = weakref.finalize(self, _end, self._child, os.getpid())
        try:
            runtime = runtime_library(sanitized=mode.sanitized)
        except BaseException:  # an interrupt too: nobody else could end the child
            self.close()
            raise
        self._start: tuple[object, ...] | None = (mode, seed, threads, runtime, os.getpid())

    def __enter__(self) -> "EmulatorProcess":
        """Nothing more to do: the child runs."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """End the child."""
        self._end()

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
        return self._call("allocate", (size,)).number

    def free(self, address: int) -> None:
        """See `Emulator.free`. The memory of a child that has ended is free already."""
        if self._child.poll() is None:
            self._call("free", (address,))

    def write(self, address: int, data: Bytes) -> None:
        """See `Emulator.write`."""
        self._call("write", (address,), data=data)

    def fill(self, address: int, size: int, byte: int) -> None:
        """See `Emulator.fill`."""
        self._call("fill", (address, size, byte))

    def read(self, address: int, size: int) -> Bytes:
        """See `Emulator.read`."""
        return self._call("read", (address, size), expected=size).data

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
        self.statistics = self._call("launch", (launch,)).statistics

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> OneByOne:
        """Work to be executed together: one after the other, as it is given."""
        return OneByOne(self, works)

    def synchronize(self) -> None:
        """Nothing to wait for: a launch returns when its kernel has ended."""

    def _call(
        self,
        method: str,
        arguments: tuple[object, ...],
        *,
        data: Bytes | None = None,
        expected: int = 0,
    ) -> Answer:
        if self._start is not None:  # the child began while there was something else to do
            start, self._start = self._start, None
            self._ask("start", start, _START_SECONDS, None, 0)
        limit = self.time_limit_seconds * max(1.0, self.patience)
        answer = self._ask(method, arguments, limit, data, expected)
        if answer.error is not None:
            raise answer.error
        return answer

    def _ask(
        self,
        method: str,
        arguments: tuple[object, ...],
        limit: float,
        data: Bytes | None,
        expected: int,
    ) -> Answer:
        child = self._child
        if child.poll() is not None or child.stdin is None or child.stdout is None:
            raise EmulatorError("the emulator's process has ended", fix="load the plan again")
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            child.kill()

        timer = threading.Timer(limit, expire)
        timer.daemon = True  # an interrupt may keep it from being cancelled
        try:
            timer.start()
            send_request(child.stdin, method, arguments, data)
            return receive_answer(child.stdout, expected)
        except (OSError, EOFError) as error:
            child.kill()
            raise self._died(method, limit if expired.is_set() else None) from error
        except BaseException:  # an interrupt: the next answer would be one to this request
            child.kill()
            child.wait()
            raise
        finally:
            timer.cancel()

    def _died(self, method: str, limit: float | None) -> EmulatorError:
        status = self._child.wait()
        if limit is not None:
            return EmulatorTimeoutError(
                f"{method} did not end within {limit:g} s",
                fix="another schedule may not hang; a large problem needs a GPU, or a smaller batch",
            )
        reported = None if self._reports is None else sanitizers.reported(self._reports)
        if reported is not None:
            return EmulatorError(
                f"{method}: {reported}", fix="this is a bug in the kernel or its launch"
            )
        return EmulatorError(
            f"the emulator's process died in {method} (status {status})",
            fix="execute with checks (CHECKING) to learn where the kernel tramples on memory",
        )


def _end(child: subprocess.Popen[bytes], parent: int) -> None:
    """End a child that is this process's own: a fork of the parent has no say in it."""
    if os.getpid() != parent:
        return
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):  # half a request may wait to be sent
                pipe.close()
