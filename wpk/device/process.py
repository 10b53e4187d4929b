"""A GPU behind a process: a kernel that hangs, crashes or tramples on memory costs only that process.

`GpuProcess` is a device like `wpk.device.cuda.CudaDevice`, every call within a time limit. Its
allocations lie between guards (`wpk.device.guarded`).
"""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Pipe
from typing import Any, Self, cast

import numpy as np

from wpk.blocks import by_blocks
from wpk.device.child import Call
from wpk.device.errors import GpuLostError, GpuTimeoutError
from wpk.device.facts import DeviceFacts
from wpk.device.rotation import Region
from wpk.device.shared import SharedMemory
from wpk.device.timing import Patience, Timing
from wpk.errors import LaunchError, WpkError
from wpk.execution import Bytes, Image, Predecessors, Replay, Work
from wpk.trial import Regime

_START_SECONDS = 60.0
"""For the interpreter, the driver and the context, on a loaded machine."""

_Facts = tuple[str, tuple[int, int], str, str, DeviceFacts]


class GpuProcess:
    """A GPU in a child process. Use it as a context manager, or call `close`.

    After a `LaunchError` the child has ended, and its memory with it: a context in which a kernel
    failed executes nothing more, and what a wild kernel left behind must not reach the next trial.

    Attributes:
        name: What a report calls the GPU.
        capability: Its major and minor compute capability.
        driver: Its driver's own version.
        cuda_api: Version of CUDA that its driver supports.
        facts: Numbers that were read off it.
        limit_seconds: Of one call.
    """

    executes_source = False

    _MODULE = "wpk.device.child"
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
        self._connection, theirs = Pipe()
        with theirs:
            self._child = (
                subprocess.Popen(  # a session of its own: Ctrl-C is the parent's to handle
                    [
                        sys.executable,
                        "-P",
                        "-m",
                        self._MODULE,
                        str(theirs.fileno()),
                        str(self._shared.descriptor),
                        str(ordinal),
                    ],
                    pass_fds=[theirs.fileno(), self._shared.descriptor],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
        try:
            facts = self._call("facts", limit=_START_SECONDS)
        except BaseException:  # an interrupt too: nobody else could end the child
            self.close()
            raise
        self.name, self.capability, self.driver, self.cuda_api, self.facts = cast("_Facts", facts)

    def __enter__(self) -> Self:
        """Nothing more to do: the child runs."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()

    @property
    def l2_bytes(self) -> int:
        """Size of its L2 cache."""
        return self.facts.l2_bytes

    @property
    def is_alive(self) -> bool:
        """Whether it can be called."""
        return self._child.poll() is None

    def close(self) -> None:
        """End the child."""
        self._end_child()
        self._connection.close()
        self._shared.close()

    def load(self, image: Image) -> None:
        """See `CudaDevice.load`."""
        self._call("load", image)

    def allocate(self, size: int) -> int:
        """See `CudaDevice.allocate`; the address is one of the child's."""
        return cast("int", self._call("allocate", size))

    def free(self, address: int) -> None:
        """Give memory back. That of a child that has ended is free already.

        Raises:
            LaunchError: Something was written next to it.
        """
        if self.is_alive:
            self._call("free", address)

    def write(self, address: int, data: Bytes) -> None:
        """See `CudaDevice.write`."""
        flat = data.reshape(-1)
        loan = self._shared.lend(data.size)
        by_blocks(data.size, lambda block: np.copyto(loan.array[block], flat[block]))
        self._call("write", address, loan.segment, data.size)

    def fill(self, address: int, size: int, byte: int) -> None:
        """See `CudaDevice.fill`."""
        self._call("fill", address, size, byte)

    def read(self, address: int, size: int) -> Bytes:
        """See `CudaDevice.read`; the array lies in memory that is used again when it is gone."""
        loan = self._shared.lend(size)
        self._call("read", address, loan.segment, size)
        return loan.array

    def launch(self, work: Work) -> None:
        """See `CudaDevice.launch`."""
        self._call("launch", work)

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> Replay:
        """See `CudaDevice.capture`; the graph is the child's."""
        unused = [self._unused.pop() for _ in range(len(self._unused))]
        number = cast("int", self._call("capture", tuple(works), predecessors, unused))
        replay = _RemoteReplay(self, number)
        weakref.finalize(replay, self._unused.append, number)  # no call: it may come amid another
        return replay

    def replay(self, number: int) -> None:
        """Start what was captured under a number."""
        self._call("replay", number)

    def synchronize(self) -> None:
        """See `CudaDevice.synchronize`."""
        self._call("synchronize")

    def measure(
        self,
        works: Sequence[Work],
        regions: Sequence[Region],
        regime: Regime,
        patience: Patience,
    ) -> Timing:
        """See `wpk.device.measure.measure`."""
        return cast("Timing", self._call("measure", works, regions, regime, patience))

    def step_seconds(self, steps: Sequence[Sequence[Work]]) -> tuple[float, ...]:
        """See `wpk.device.step_times.step_seconds`."""
        return cast("tuple[float, ...]", self._call("step_seconds", steps))

    def _end_child(self) -> None:
        self._child.kill()
        self._child.wait()

    def _call(self, method: str, *arguments: object, limit: float | None = None) -> Any:
        seconds = self.limit_seconds if limit is None else limit
        if not self.is_alive:
            raise GpuLostError("the process of the GPU has ended", fix="start a new one")
        try:
            self._connection.send(Call(method, arguments, seconds))
            if not self._connection.poll(seconds):
                raise GpuTimeoutError(
                    f"{method} did not end within {seconds:g} s: a kernel hangs",
                    fix="another schedule may not hang; for a large problem, allow more time",
                )
            answer = self._connection.recv()
        except (OSError, EOFError) as error:
            raise GpuLostError(
                f"the process of the GPU died in {method} (status {self._child.wait()})",
                fix="execute the plan with --device cpu, which says where a kernel goes wrong",
            ) from error
        except BaseException:  # the answer, if it still came, would be taken for the next call's
            self._end_child()
            raise
        if isinstance(answer, LaunchError):
            self._end_child()
        if isinstance(answer, WpkError):
            raise answer
        return answer


class _RemoteReplay:
    """A graph in the child."""

    def __init__(self, gpu: GpuProcess, number: int) -> None:
        self._gpu, self._number = gpu, number

    def replay(self) -> None:
        """Start it."""
        self._gpu.replay(self._number)
