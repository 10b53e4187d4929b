"""The emulator in a process of its own: a kernel that hangs, crashes or tramples costs only that.

`EmulatorProcess` is the same device as `Emulator`, and its child is ``python -m wpk.emulator.serve``.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from wpk.emulator import sanitizers
from wpk.emulator.build import runtime_library
from wpk.emulator.cpu_device import CpuDevice
from wpk.emulator.emulator import Emulator
from wpk.emulator.errors import EmulatorError, EmulatorTimeoutError
from wpk.emulator.memory import Bytes
from wpk.emulator.mode import FAST, Mode
from wpk.emulator.native import Statistics
from wpk.errors import CompileError
from wpk.execution import BoundLaunch, Device, KernelImage, Libraries
from wpk.process import ChildDevice, ChildLostError, ChildProcess, ChildTimeoutError
from wpk.progress import Progress

_START_SECONDS = 60.0  # for the interpreter and numpy on a loaded machine


class EmulatorProcess(CpuDevice, ChildDevice):
    """An `Emulator` in a child process, each launch within a time limit.

    After an error other than a kernel's own (time limit, crash, interrupt) the child is gone and so is
    its memory: make a new one.

    Attributes:
        time_limit_seconds: Of one launch.
        patience: How many times longer a launch may take at the moment.
    """

    def __init__(
        self,
        mode: Mode = FAST,
        *,
        libraries: Libraries[Device] | None = None,
        time_limit_seconds: float = 60.0,
        threads: int | None = None,
    ) -> None:
        """Start the child; the arguments but the time limit are those of `Emulator`.

        What the libraries compute they compute here, on the child's memory.
        """
        CpuDevice.__init__(self, mode, libraries)
        self.time_limit_seconds = time_limit_seconds
        self.patience = 1.0
        self._builder = Emulator(mode)
        self._reports = sanitizers.open_reports(self) if mode.sanitized else None
        child = ChildProcess(
            "wpk.emulator.serve",
            errors=(EmulatorError, CompileError),
            environment=sanitizers.environment() if mode.sanitized else None,
            reports=self._reports,
        )
        ChildDevice.__init__(self, child)
        try:
            runtime = runtime_library(sanitized=mode.sanitized)
        except BaseException:  # an interrupt too: nobody else could end the child
            self.close()
            raise
        self._start: tuple[object, ...] | None = (mode, threads, runtime)

    def write(self, address: int, data: Bytes) -> None:
        """See `Emulator.write`."""
        flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self._tell("write", address, data=flat.data)

    def read(self, address: int, size: int) -> Bytes:
        """See `Emulator.read`."""
        return np.frombuffer(self._ask("read", address, size, answer=bytes, size=size), np.uint8)

    def finish_loading(self, progress: Progress) -> None:
        """See `Emulator.finish_loading`."""
        self._builder.finish_loading(progress)

    def _load(self, image: KernelImage) -> None:
        self._builder.load(image)  # here: the time limit is for executing it

    def _launch(self, launch: BoundLaunch) -> None:
        library = self._builder.library(launch.kernel)
        self.statistics = self._ask("launch", launch, library, answer=Statistics)

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
