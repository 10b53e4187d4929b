"""A GPU behind a process: a kernel that hangs, crashes or tramples on memory costs only that process.

`GpuProcess` is a device like `wpk.device.CudaDevice` with libraries and guards, every call within a time
limit. Its child is ``python -m wpk.backends.gpu_child``. Tensors go through shared memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from wpk.blocks import by_blocks
from wpk.device import (
    GpuFacts,
    GpuLostError,
    GpuTimeoutError,
    MemoryRange,
    Patience,
    Timing,
    TrampledError,
)
from wpk.errors import EngineError, LaunchError
from wpk.execution import Bytes, Image, LibraryImage, Predecessors, Replay, Work
from wpk.libraries import LibraryOffer
from wpk.problems import Problem
from wpk.process import ChildDevice, ChildLostError, ChildProcess, ChildTimeoutError, SharedMemory
from wpk.trial import Regime

_START_SECONDS = 60.0
"""For the interpreter, the driver and the context, on a loaded machine."""

_PREPARE_SECONDS = 60.0
"""For a library to load, and to compile one implementation."""


class GpuProcess(ChildDevice):
    """A GPU in a child process.

    After a `LaunchError` the child has ended, and its memory with it: a context in which a kernel
    failed executes nothing more, and what a wild kernel left behind must not reach the next trial.

    Attributes:
        facts: What was read off the GPU.
        name: What a report calls it.
        capability: Its major and minor compute capability.
        limit_seconds: Of one call.
    """

    executes_source = False

    _MODULE = "wpk.backends.gpu_child"
    """What the child executes."""

    def __init__(self, ordinal: int = 0, *, limit_seconds: float = 10.0) -> None:
        """Start the child and open the GPU in it.

        Raises:
            EngineError: There is no such GPU, or no pycuda.
            LaunchError: The child did not start.
        """
        self.limit_seconds = limit_seconds
        self._unused: list[int] = []
        self._shared = SharedMemory()
        memory = self._shared.descriptor
        errors = (LaunchError, EngineError, TrampledError)
        super().__init__(
            ChildProcess(self._MODULE, memory, ordinal, errors=errors, descriptors=[memory])
        )
        try:
            self.facts = self._ask("facts", answer=GpuFacts, limit=_START_SECONDS)
        except BaseException:
            self.close()
            raise
        self.name, self.capability = self.facts.name, self.facts.capability

    def close(self) -> None:
        """End the child."""
        super().close()
        self._shared.close()

    def load(self, image: Image) -> None:
        """See `CudaDevice.load`."""
        self._tell("load", image)

    def offer(self, library: str, problem: Problem) -> LibraryOffer:
        """What a library proposes for a problem.

        Raises:
            LaunchError: The process is lost.
        """
        return self._ask("offer", library, problem, answer=LibraryOffer, limit=_PREPARE_SECONDS)

    def prepare(self, image: LibraryImage) -> int:
        """Make a library's implementation ready; the bytes of scratch memory that it needs.

        Raises:
            EngineError: It cannot be made ready here.
            LaunchError: The process is lost.
        """
        return self._ask("prepare", image, answer=int, limit=_PREPARE_SECONDS)

    def write(self, address: int, data: Bytes) -> None:
        """See `CudaDevice.write`."""
        flat = data.reshape(-1)
        loan = self._shared.lend(data.size)
        by_blocks(data.size, lambda block: np.copyto(loan.array[block], flat[block]))
        self._tell("write", address, loan.segment, data.size)

    def read(self, address: int, size: int) -> Bytes:
        """See `CudaDevice.read`; the array lies in memory that is used again when it is gone."""
        loan = self._shared.lend(size)
        self._tell("read", address, loan.segment, size)
        return loan.array

    def launch(self, work: Work) -> None:
        """See `CudaDevice.launch`."""
        self._tell("launch", work)

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> Replay:
        """See `CudaDevice.capture`; the graph is the child's."""
        unused = [self._unused.pop() for _ in range(len(self._unused))]
        number = self._ask("capture", tuple(works), predecessors, unused, answer=int)
        replay = _RemoteReplay(partial(self._tell, "replay", number))
        weakref.finalize(replay, self._unused.append, number)  # no call: it may come amid another
        return replay

    def synchronize(self) -> None:
        """See `CudaDevice.synchronize`."""
        self._tell("synchronize")

    def measure(
        self,
        works: Sequence[Work],
        regions: Sequence[MemoryRange],
        regime: Regime,
        patience: Patience,
    ) -> Timing:
        """See `wpk.device.measure`."""
        return self._ask("measure", works, regions, regime, patience, answer=Timing)

    def step_seconds(self, steps: Sequence[Sequence[Work]]) -> tuple[float, ...]:
        """See `wpk.device.step_seconds`."""
        return self._ask("step_seconds", steps, answer=tuple[float, ...])

    @contextmanager
    def _supervised(self, method: str, limit: float | None = None) -> Iterator[float]:
        """Say in words how the child ended; end it where a kernel failed."""
        seconds = self.limit_seconds if limit is None else limit
        try:
            yield seconds
        except ChildTimeoutError as error:
            raise GpuTimeoutError(
                f"{method} did not end within {seconds:g} s: a kernel hangs",
                fix="another schedule may not hang; for a large problem, allow more time",
            ) from error
        except ChildLostError as error:
            if error.status is None:
                raise GpuLostError(
                    "the process of the GPU has ended", fix="start a new one"
                ) from error
            raise GpuLostError(
                f"the process of the GPU died in {method} (status {error.status})",
                fix="execute the plan with --device cpu, which says where a kernel goes wrong",
            ) from error
        except LaunchError:
            self._child.end()
            raise


class _RemoteReplay:
    """A graph in the child."""

    def __init__(self, start: Callable[[], None]) -> None:
        self.replay = start
