"""The emulator in a process of its own: a kernel that hangs, crashes or tramples costs only that.

`EmulatorProcess` is the same device as `Emulator`, and its child is ``python -m wpk.emulator.serve``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from wpk.emulator import sanitizers
from wpk.emulator.build import runtime_library
from wpk.emulator.emulator import Emulator
from wpk.emulator.errors import EmulatorError, EmulatorTimeoutError
from wpk.emulator.memory import Bytes
from wpk.emulator.mode import FAST, Mode
from wpk.emulator.native import Statistics
from wpk.errors import CompileError
from wpk.execution import (
    BoundCall,
    Device,
    Image,
    Libraries,
    LibraryImage,
    NoLibraries,
    OneByOne,
    Predecessors,
    Work,
)
from wpk.process import ChildDevice, ChildLostError, ChildProcess, ChildTimeoutError

_START_SECONDS = 60.0  # for the interpreter and numpy on a loaded machine


class EmulatorProcess(ChildDevice):
    """An `Emulator` in a child process, each launch within a time limit.

    After an error other than a kernel's own (time limit, crash, interrupt) the child is gone and so is
    its memory: make a new one.

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
        libraries: Libraries[Device] | None = None,
        time_limit_seconds: float = 60.0,
        seed: int = 0,
        threads: int | None = None,
        cache: Path | None = None,
    ) -> None:
        """Start the child; the arguments but the time limit are those of `Emulator`.

        What the libraries compute they compute here, on the child's memory.
        """
        self.mode = mode
        self.time_limit_seconds = time_limit_seconds
        self.patience = 1.0
        self.statistics: Statistics | None = None
        self._libraries: Libraries[Device] = libraries or NoLibraries()
        self._builder = Emulator(mode, cache=cache)
        self._reports = sanitizers.open_reports(self) if mode.sanitized else None
        super().__init__(
            ChildProcess(
                "wpk.emulator.serve",
                errors=(EmulatorError, CompileError),
                environment=sanitizers.environment() if mode.sanitized else None,
                reports=self._reports,
            )
        )
        try:
            runtime = runtime_library(sanitized=mode.sanitized)
        except BaseException:  # an interrupt too: nobody else could end the child
            self.close()
            raise
        self._start: tuple[object, ...] | None = (mode, seed, threads, runtime)

    def load(self, image: Image) -> None:
        """Compile a kernel, here and in the background: the time limit is for executing it.

        Raises:
            EngineError: It is a library's, which cannot be called.
        """
        if isinstance(image, LibraryImage):
            self._libraries.load(image, self)
        else:
            self._builder.load(image)

    def write(self, address: int, data: Bytes) -> None:
        """See `Emulator.write`."""
        flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self._tell("write", address, data=flat.data)

    def read(self, address: int, size: int) -> Bytes:
        """See `Emulator.read`."""
        return np.frombuffer(self._ask("read", address, size, answer=bytes, size=size), np.uint8)

    def launch(self, work: Work) -> None:
        """Execute a kernel to its end, or call a library.

        Raises:
            EmulatorTimeoutError: It took longer than the time limit; the child is gone.
            EmulatorError: It broke a rule, or crashed the child, which then is gone.
            CompileError: It does not compile.
        """
        if isinstance(work, BoundCall):
            self._libraries.call(work, self)
        else:
            library = self._builder.library(work.kernel)
            self.statistics = self._ask("launch", work, library, answer=Statistics)

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> OneByOne:
        """Work to be executed together: one after the other, as it is given."""
        return OneByOne(self, works)

    def synchronize(self) -> None:
        """Nothing to wait for: a launch returns when its kernel has ended."""

    @contextmanager
    def _supervised(self, method: str, limit: float | None = None) -> Iterator[float]:
        """Say in words how the child ended; start its emulator before the first call."""
        if limit is None:
            limit = self.time_limit_seconds * max(1.0, self.patience)
        try:
            if self._start is not None:  # the child began while there was something else to do
                start, self._start = self._start, None
                self._child.ask("start", *start, limit_seconds=max(limit, _START_SECONDS))
            yield limit
        except ChildTimeoutError as error:
            raise EmulatorTimeoutError(
                f"{method} did not end within {limit:g} s",
                fix="another schedule may not hang; a large problem needs a GPU, or a smaller batch",
            ) from error
        except ChildLostError as error:
            raise self._death(method, error.status) from error

    def _death(self, method: str, status: int | None) -> EmulatorError:
        if status is None:
            return EmulatorError("the emulator's process has ended", fix="load the plan again")
        reported = None if self._reports is None else sanitizers.reported(self._reports)
        if reported is not None:
            return EmulatorError(
                f"{method}: {reported}", fix="this is a bug in the kernel or its launch"
            )
        return EmulatorError(
            f"the emulator's process died in {method} (status {status})",
            fix="execute with checks (CHECKING) to learn where the kernel tramples on memory",
        )
