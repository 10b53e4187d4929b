"""The device that executes kernels on an NVIDIA GPU, through pycuda.

pycuda (extra ``gpu``) owns context, memory, streams and events; kernels, graphs and tensor maps go through
cuda-bindings. The context is the device's primary one, so other libraries in the process share it.
"""

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, Self

import numpy as np

from wpk.device.capture_order import end_overlap, put_in_order
from wpk.device.context import CurrentContext, DriverContext, pycuda_driver, retain
from wpk.device.errors import kernel_failure
from wpk.device.facts import read_facts
from wpk.device.graph import CudaGraph, CudaMark, bindings, checked
from wpk.device.kernels import CudaKernels
from wpk.device.memory import GUARD_BYTES, CudaMemory, located
from wpk.device.streams import LEGACY_STREAM
from wpk.errors import EngineError, LaunchError
from wpk.execution import (
    BoundCall,
    Bytes,
    Image,
    Libraries,
    LibraryImage,
    NoLibraries,
    Predecessors,
    Replay,
    Work,
)

_NON_BLOCKING = 1
"""``CU_STREAM_NON_BLOCKING``: pycuda has no name for it."""


class CudaDevice:
    """One GPU: loads cubins, holds memory, launches, calls the libraries it is given. Calls take effect in order.

    Any thread may call it, one at a time.

    Attributes:
        name: What a report calls it, e.g. ``NVIDIA H200 (sm_90)``.
        ordinal: Its number among the GPUs of the process.
        capability: Major and minor compute capability.
        facts: What was read off the driver.
        stream: Handle of the device's own stream, which launches and replays go to.
        current: Entered as `active()` is, around replays, marks and calls of the device, not of pycuda.
    """

    executes_source = False

    def __init__(
        self,
        ordinal: int = 0,
        *,
        libraries: "Libraries[CudaDevice] | None" = None,
        is_guarded: bool = False,
    ) -> None:
        """Take a GPU's primary context.

        Args:
            ordinal: Number of the GPU.
            libraries: What is called besides kernels, closed with the device; nothing when not given.
            is_guarded: Whether allocations lie between guards, which are checked when they are given back.

        Raises:
            EngineError: pycuda is not installed, or there is no such GPU.
        """
        self._cuda = pycuda_driver()
        self.ordinal = ordinal
        device, context = _take(self._cuda, ordinal)
        self.facts = read_facts(self._cuda, device)
        self.name, self.capability = self.facts.name, self.facts.capability
        self._context = CurrentContext(self._cuda, context, self.name)
        self.current = DriverContext(self._context)
        self._libraries: Libraries[CudaDevice] = libraries or NoLibraries()
        self._kernels = CudaKernels(self.name)
        self._children: weakref.WeakSet[CudaGraph | CudaMark] = weakref.WeakSet()
        self._kernel_in_front = False
        with self._context:
            # The first waits for copies of memory and they for it, so calls take effect in order.
            # Graphs are captured on the second, which does not: another thread's copy would break off
            # a capture on the first.
            self._streams = [self._cuda.Stream(), self._cuda.Stream(_NON_BLOCKING)]
            self._events = [self._cuda.Event(), self._cuda.Event()]
        guard_bytes = GUARD_BYTES if is_guarded else 0
        self._memory = CudaMemory(self._cuda, self.name, self._streams[0], guard_bytes=guard_bytes)
        self.stream = int(self._streams[0].handle)
        parts = (self._kernels, self._memory, self._events, self._streams)
        clears = [self._libraries.close, *(part.clear for part in parts)]
        self._leave = weakref.finalize(self, _leave, self._context, self._children, clears)

    def close(self) -> None:
        """Unload libraries, free all memory and leave the context; also done when the process ends."""
        self._leave()

    def __enter__(self) -> Self:
        """The device itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    @property
    def work_stream(self) -> int:
        """Handle of the stream that work is put on now, for libraries that put theirs there too.

        The device's own, or the one that a graph is being captured on.
        """
        return int(self._streams[0].handle)

    def active(self) -> AbstractContextManager[object]:
        """While entered, this thread's context is the device's, and other threads wait.

        Raises:
            EngineError: On entering: the device was closed.
        """
        return self._context

    def load(self, image: Image) -> None:
        """Load a kernel's cubin, or make a library's implementation ready.

        Raises:
            EngineError: The GPU cannot execute it, e.g. it was built for another architecture.
        """
        with self._context:
            if isinstance(image, LibraryImage):
                self._libraries.load(image, self)
            else:
                self._kernels.load(image)

    def allocate(self, size: int) -> int:
        """The address, a multiple of 256, of ``size`` bytes with undefined contents.

        Raises:
            EngineError: There is not enough memory.
        """
        with self._context:
            return self._memory.allocate(size)

    def free(self, address: int) -> None:
        """Give an allocation back; that of a device that was closed is free already."""
        if self._context.is_open:
            with self._context:
                self._memory.free(address)

    def write(self, address: int, data: Bytes) -> None:
        """Copy bytes to the GPU."""
        with self._context:
            self._memory.write(address, data)

    def read(self, address: int, size: int, into: Bytes | None = None) -> Bytes:
        """Copy bytes from the GPU, after everything launched before has finished; to a new array if to none.

        Raises:
            LaunchError: A kernel failed.
        """
        data = np.empty(size, np.uint8) if into is None else into
        with self._context:
            self._memory.read(address, data)
        return data

    def launch(self, work: Work) -> None:
        """Start a kernel, or call a library.

        Libraries launch kernels early that trust the one in front to let them begin only when its
        results are there. Ours let the next one begin sooner.

        Raises:
            LaunchError: It cannot be started.
        """
        with self._context:
            self._start(work, self._kernel_in_front)
            self._kernel_in_front = not isinstance(work, BoundCall)

    def _start(self, work: Work, behind_kernel: bool) -> None:
        """Put work on the stream of the moment."""
        if isinstance(work, BoundCall):
            if behind_kernel:
                end_overlap(self.work_stream)
            self._libraries.call(work, self)
        else:
            self._kernels.launch(work, self.work_stream)

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> CudaGraph:
        """A CUDA graph; see `Device.capture`.

        Raises:
            LaunchError: One cannot be started.
        """
        with self._context:
            self._streams.reverse()
            stream = self.work_stream
            try:
                graph = CudaGraph(
                    stream,
                    lambda: put_in_order(stream, works, predecessors, self._start),
                    replays_on=self.stream,
                )
            finally:
                self._streams.reverse()
        self._children.add(graph)
        return graph

    def make_mark(self) -> CudaMark:
        """A point in a stream's work that others can wait for."""
        with self._context:
            mark = CudaMark()
        self._children.add(mark)
        return mark

    def synchronize(self) -> None:
        """Wait until everything that was started has finished, or raise `LaunchError` if it failed."""
        with self._context:
            try:
                self._streams[0].synchronize()
            except self._cuda.Error as error:
                raise kernel_failure(self.name, error) from error

    def settle(self) -> None:
        """Wait for copies, and for work on all streams that take turns with them.

        Raises:
            LaunchError: A kernel failed.
        """
        driver = bindings()
        with self._context:
            # Not the whole context: that may not be waited for while another thread captures.
            checked("finish its work", driver.cuStreamSynchronize(driver.CUstream(LEGACY_STREAM)))

    def seconds(self, replay: Replay) -> float:
        """Time of a replay between two events on the GPU; raises `LaunchError` as `synchronize`."""
        with self._context:
            (begin, end), stream = self._events, self._streams[0]
            try:
                begin.record(stream)
                replay.replay()
                end.record(stream)
                end.synchronize()
                return float(begin.time_till(end)) * 1e-3
            except self._cuda.Error as error:
                raise kernel_failure(self.name, error) from error

    def fill(self, address: int, size: int, byte: int) -> None:
        """Start to set bytes of memory."""
        with self._context:
            self._memory.fill(address, size, byte)

    def copy_on(self, stream: int, source: int, target: int, size: int) -> None:
        """Start to copy bytes from one place of memory to another, on any stream by its handle."""
        driver = bindings()
        with self._context:
            checked(
                "copy memory",
                driver.cuMemcpyDtoDAsync(target, source, size, driver.CUstream(stream)),
            )

    def located(self, address: int) -> int | None:
        """Number of the GPU that an address lies on; None where it is no GPU's memory."""
        with self._context:
            return located(address)


def _take(driver: Any, ordinal: int) -> tuple[Any, Any]:
    """Pycuda's objects for a GPU and its primary context."""
    try:
        driver.init()
        return driver.Device(ordinal), retain(driver, ordinal)
    except driver.Error as error:
        raise EngineError(
            f"GPU {ordinal} cannot be used: {error}",
            fix="check nvidia-smi, or use --device cpu",
        ) from error


def _leave(
    context: CurrentContext,
    children: "weakref.WeakSet[CudaGraph | CudaMark]",
    clears: Sequence[Callable[[], None]],
) -> None:
    """Wait for what runs, let go of what was captured, then of each part, then of the context."""
    with ExitStack() as remaining:  # a part that fails keeps no other from being let go of
        remaining.callback(context.close)
        remaining.enter_context(context)
        for clear in reversed(clears):
            remaining.callback(clear)
        for child in list(children):
            if isinstance(child, CudaMark):
                with suppress(LaunchError):  # whatever became of it, it does not run any more
                    child.wait()
        for child in list(children):
            child.close()
