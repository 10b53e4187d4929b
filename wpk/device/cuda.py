"""The device that executes kernels on an NVIDIA GPU, through pycuda.

pycuda (extra ``gpu``) owns context, memory, modules, streams and events. The context is the device's
primary one, so other libraries in the process share it.
"""

import weakref
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wpk.device.graph import CudaGraph
from wpk.errors import EngineError, LaunchError
from wpk.execution import (
    BoundCall,
    BoundLaunch,
    Image,
    KernelsOnly,
    LibraryImage,
    Pointer,
    Replay,
    Work,
)

Bytes = NDArray[np.uint8]


class CudaDevice(KernelsOnly):
    """One GPU: loads cubins, holds memory, launches. Calls take effect in order.

    Attributes:
        name: What a report calls it, e.g. ``NVIDIA H200 (sm_90)``.
        capability: Major and minor compute capability.
        driver: Version of CUDA that the driver supports, e.g. ``13.0``.
        l2_bytes: Size of the L2 cache.
    """

    executes_source = False

    def __init__(self, ordinal: int = 0) -> None:
        """Take a GPU's primary context.

        Raises:
            EngineError: pycuda is not installed, or there is no such GPU.
        """
        self._cuda = _driver()
        try:
            self._cuda.init()
            device = self._cuda.Device(ordinal)
            context = device.retain_primary_context()
        except self._cuda.Error as error:
            raise EngineError(
                f"GPU {ordinal} cannot be used: {error}",
                fix="check nvidia-smi, or use --device cpu",
            ) from error
        self.capability: tuple[int, int] = tuple(device.compute_capability())
        major, minor = self.capability
        self.name = f"{device.name()} (sm_{major}{minor})"
        version = self._cuda.get_driver_version()
        self.driver = f"{version // 1000}.{version % 1000 // 10}"
        self._functions: dict[str, tuple[Any, Any]] = {}
        self._allocations: dict[int, Any] = {}
        self.l2_bytes: int = device.get_attribute(self._cuda.device_attribute.L2_CACHE_SIZE)
        context.push()
        # It waits for copies of memory and they for it, so calls take effect in order.
        self._stream = self._cuda.Stream()
        self._begin, self._end = self._cuda.Event(), self._cuda.Event()
        self._leave = weakref.finalize(self, _leave, context, self._functions, self._allocations)

    def close(self) -> None:
        """Free all memory and leave the context; also done when the process ends."""
        self._leave()

    def __enter__(self) -> Self:
        """The device itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    @property
    def stream(self) -> int:
        """Handle of the stream that all work is put on, for libraries that put theirs there too."""
        return int(self._stream.handle)

    def load(self, image: Image) -> None:
        """Load a kernel's cubin, or make a library's implementation ready.

        Raises:
            EngineError: The GPU cannot execute it, e.g. it was built for another architecture.
        """
        if isinstance(image, LibraryImage):
            self.load_library(image)
            return
        if image.digest in self._functions:
            return
        try:
            module = self._cuda.module_from_buffer(image.cubin)
            function = module.get_function(image.source.entry)
        except self._cuda.Error as error:
            raise EngineError(
                f"{self.name} cannot load kernel {image.source.entry}: {error}",
                fix="write the plan for this GPU: wpk optimize --target",
            ) from error
        self._functions[image.digest] = (module, function)

    def allocate(self, size: int) -> int:
        """The address, a multiple of 256, of ``size`` bytes with undefined contents.

        Raises:
            EngineError: There is not enough memory.
        """
        try:
            allocation = self._cuda.mem_alloc(size)
        except self._cuda.MemoryError as error:
            free, total = self._cuda.mem_get_info()
            raise EngineError(
                f"{self.name} has no {size} bytes left: {free} of {total} are free",
                fix="free memory on the GPU, or run a smaller batch",
            ) from error
        self._allocations[int(allocation)] = allocation
        return int(allocation)

    def free(self, address: int) -> None:
        """Give an allocation back."""
        self._allocations.pop(address).free()

    def write(self, address: int, data: Bytes) -> None:
        """Copy bytes to the GPU."""
        self._cuda.memcpy_htod(address, np.ascontiguousarray(data))

    def read(self, address: int, size: int) -> Bytes:
        """Copy bytes from the GPU, after everything launched before has finished.

        Raises:
            LaunchError: A kernel failed.
        """
        data = np.empty(size, np.uint8)
        try:
            self._cuda.memcpy_dtoh(data, address)
        except self._cuda.Error as error:
            raise self._failed(error) from error
        return data

    def launch(self, work: Work) -> None:
        """Start a kernel, or call a library.

        Raises:
            LaunchError: It cannot be started.
        """
        if isinstance(work, BoundCall):
            self.call_library(work)
        else:
            self._launch(work)

    def _launch(self, launch: BoundLaunch) -> None:
        if launch.cluster != (1, 1, 1) or launch.attributes:
            raise LaunchError(
                f"{launch.entry} needs launch attributes {launch.attributes} and clusters of "
                f"{launch.cluster}, which this version does not launch",
                fix="optimize the model again with this version of wpk",
            )
        _, function = self._functions[launch.kernel]
        limit = self._cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        arguments = [_value(launch.entry, argument) for argument in launch.arguments]
        try:
            function.set_attribute(limit, launch.shared_bytes)
            function(
                *arguments,
                grid=launch.grid,
                block=launch.block,
                shared=launch.shared_bytes,
                stream=self._stream,
            )
        except self._cuda.Error as error:
            raise LaunchError(
                f"{launch.entry} cannot be launched on {self.name} with grid {launch.grid}, block "
                f"{launch.block}, {launch.shared_bytes} bytes of shared memory: {error}",
                fix="write the plan for this GPU: wpk optimize --target",
            ) from error

    def capture(self, works: Sequence[Work]) -> Replay:
        """A CUDA graph of work that follows each other.

        Raises:
            LaunchError: One cannot be started.
        """

        def enqueue() -> None:
            for work in works:
                self.launch(work)

        return CudaGraph(self._stream.handle, enqueue)

    def synchronize(self) -> None:
        """Wait until everything that was started has finished.

        Raises:
            LaunchError: A kernel failed.
        """
        try:
            self._stream.synchronize()
        except self._cuda.Error as error:
            raise self._failed(error) from error

    def seconds(self, replay: Replay) -> float:
        """Time of a replay between two events on the GPU, after everything started before.

        Raises:
            LaunchError: A kernel failed.
        """
        try:
            self._begin.record(self._stream)
            replay.replay()
            self._end.record(self._stream)
            self._end.synchronize()
            return float(self._begin.time_till(self._end)) * 1e-3
        except self._cuda.Error as error:
            raise self._failed(error) from error

    def fill(self, address: int, size: int, byte: int) -> None:
        """Start to set bytes of memory."""
        self._cuda.memset_d8_async(address, byte, size, self._stream)

    def copy(self, source: int, target: int, size: int) -> None:
        """Start to copy bytes from one place of memory to another."""
        self._cuda.memcpy_dtod_async(target, source, size, self._stream)

    def _failed(self, error: Exception) -> LaunchError:
        return LaunchError(
            f"a kernel failed on {self.name}: {error}",
            fix="run the plan with --device cpu, which says which kernel and where",
        )


def _leave(context: Any, functions: dict[str, Any], allocations: dict[int, Any]) -> None:
    functions.clear()
    while allocations:
        allocations.popitem()[1].free()
    context.pop()


def _value(entry: str, argument: object) -> np.generic:
    if isinstance(argument, Pointer):
        return np.uintp(argument.address)
    if isinstance(argument, int):
        return np.int32(argument)
    raise LaunchError(
        f"{entry} takes a tensor map, which this version does not make",
        fix="optimize the model again with this version of wpk",
    )


def _driver() -> Any:
    try:
        import pycuda.driver
    except ImportError as error:
        raise EngineError(
            f"executing on a GPU needs pycuda, which cannot be imported: {error}",
            fix="pip install 'wpk[gpu]' (it needs the CUDA toolkit), or use --device cpu",
        ) from error
    return pycuda.driver
