"""The device that executes kernels on the CPU."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from wpk.emulator.build import compile_unit
from wpk.emulator.cpu_device import CpuDevice
from wpk.emulator.errors import EmulatorError
from wpk.emulator.memory import Bytes, DeviceBuffer, guarded_buffer, plain_buffer
from wpk.emulator.mode import FAST, Mode
from wpk.emulator.native import Statistics, launch_kernel
from wpk.execution import BoundLaunch, Device, KernelImage, Libraries
from wpk.free_memory import free_bytes
from wpk.progress import Progress

_ALIGNMENT = 256
_BUG = "this is a bug in the code that plans memory or launches"


class Emulator(CpuDevice):
    """Loads kernels, holds memory, launches: the same protocol as a GPU.

    Kernels are compiled in the background from `load` on; the first `launch` of one waits for it.
    """

    def __init__(
        self,
        mode: Mode = FAST,
        *,
        libraries: Libraries[Device] | None = None,
        seed: int = 0,
        threads: int | None = None,
        cache: Path | None = None,
    ) -> None:
        """Prepare an empty device.

        Args:
            mode: Which checks every launch makes.
            libraries: What is called besides kernels; nothing when not given.
            seed: Of the random order in checking modes.
            threads: Operating system threads; all CPUs of this process when not given.
            cache: Folder of built kernels; the user's cache when not given.
        """
        super().__init__(mode, libraries)
        self._seed = seed
        self._threads = threads
        self._cache = cache
        self._built: dict[str, Future[Path]] = {}
        self._buffers: dict[int, DeviceBuffer] = {}
        self._compiler = ThreadPoolExecutor(len(os.sched_getaffinity(0)), "wpk-emulator-build")

    def finish_loading(self, progress: Progress) -> None:
        """Wait until all kernels that were loaded are compiled.

        Raises:
            CompileError: One does not compile.
        """
        stage, built = "compiling kernels for the CPU", list(self._built.values())
        if all(each.done() for each in built):
            return
        for done, each in enumerate(built):
            progress(stage, done, len(built))
            each.result()
        progress(stage, len(built), len(built))

    def _load(self, image: KernelImage) -> None:
        if image.digest in self._built:
            return
        self._built[image.digest] = self._compiler.submit(
            compile_unit,
            image.source,
            checking=self.mode.checking,
            sanitized=self.mode.sanitized,
            cache=self._cache,
        )

    def library(self, digest: str) -> Path:
        """The built form of a loaded kernel; waits for its compilation.

        Raises:
            CompileError: It does not compile, or there is no compiler.
            EmulatorError: It was never loaded.
        """
        if digest not in self._built:
            raise EmulatorError(f"kernel {digest[:12]} is launched but not loaded", fix=_BUG)
        return self._built[digest].result()

    def allocate(self, size: int) -> int:
        """The address, a multiple of 256, of ``size`` bytes with undefined contents.

        With guards the contents are NaN, and what lies around the buffer cannot be touched.

        Raises:
            EmulatorError: The machine has not as much memory free.
        """
        free = free_bytes()
        if free is not None and size > free:
            raise EmulatorError(
                f"a buffer of {size / 2**30:.1f} GiB is asked for, {free / 2**30:.1f} GiB of this "
                "machine's memory are free",
                fix="execute a smaller batch, or on a machine with more memory",
            )
        buffer = guarded_buffer(size, _ALIGNMENT) if self.mode.guards else plain_buffer(size)
        if self.mode.sanitized:
            buffer.forbid_edges()
        self._buffers[buffer.address] = buffer
        return buffer.address

    def free(self, address: int) -> None:
        """Give an allocation back.

        Raises:
            EmulatorError: There is none at this address.
        """
        if self._buffers.pop(address, None) is None:
            raise EmulatorError(f"no allocation begins at {address:#x}", fix=_BUG)

    def write(self, address: int, data: Bytes) -> None:
        """Copy bytes to the device.

        Raises:
            EmulatorError: They do not fit into one allocation.
        """
        flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self._range(address, flat.nbytes).data[:] = flat

    def fill(self, address: int, size: int, byte: int) -> None:
        """Set bytes of memory.

        Raises:
            EmulatorError: They do not lie in one allocation.
        """
        self._range(address, size).data[:] = byte

    def read(self, address: int, size: int) -> Bytes:
        """Copy bytes from the device.

        Raises:
            EmulatorError: They do not lie in one allocation.
        """
        return self._range(address, size).data.copy()

    def _launch(self, launch: BoundLaunch) -> None:
        self.statistics = self.execute(launch, self.library(launch.kernel))

    def execute(self, launch: BoundLaunch, library: Path) -> Statistics:
        """Execute a kernel that was built in the form that this mode needs; tell what it did.

        Raises:
            EmulatorError: The kernel broke a rule, or the launch cannot be executed here.
        """
        done = launch_kernel(library, launch, self.mode, seed=self._seed, threads=self._threads)
        if self.mode.guards and not self.mode.sanitized:
            for address, buffer in self._buffers.items():
                buffer.check_edges(f"the buffer at {address:#x}, by {launch.entry}")
        return done

    def _range(self, address: int, size: int) -> DeviceBuffer:
        for start, buffer in self._buffers.items():
            if start <= address and address + size <= start + buffer.nbytes:
                return buffer.view(address - start, size)
        raise EmulatorError(f"no allocation holds {size} bytes at {address:#x}", fix=_BUG)
