"""Cubins on a GPU: loaded once, launched with values for their arguments.

Through cuda-bindings: pycuda does not tell the handles of its functions, and has no launch attributes.
"""

from math import prod
from typing import Any, NamedTuple

from wpk.device.graph import bindings, checked
from wpk.device.launch_form import Parameters, configuration
from wpk.errors import EngineError, LaunchError
from wpk.execution import BoundLaunch, KernelImage
from wpk.launch import NO_CLUSTER

PORTABLE_CLUSTER = 8
"""Blocks of the largest cluster that every GPU with clusters takes; more must be allowed for a kernel."""


class _LoadedKernel(NamedTuple):
    """A kernel on the GPU: handles of its module and of its function."""

    module: Any
    function: Any


class CudaKernels:
    """The kernels that are loaded on one GPU. Its context is current whenever this is called."""

    def __init__(self, name: str) -> None:
        """Begin with none, on a GPU of this name.

        Raises:
            EngineError: cuda-bindings is not installed.
        """
        self._driver = bindings()
        self._name = name
        self._loaded: dict[str, _LoadedKernel] = {}

    def load(self, image: KernelImage) -> None:
        """Load a cubin, once.

        Raises:
            EngineError: The GPU cannot execute it, e.g. it was built for another architecture.
        """
        if image.digest in self._loaded:
            return
        driver, entry = self._driver, image.source.entry
        try:
            module = checked(f"load {entry}", driver.cuModuleLoadData(image.cubin))
            try:
                found = driver.cuModuleGetFunction(module, entry.encode())
                function = checked(f"find {entry}", found)
            except LaunchError:
                driver.cuModuleUnload(module)
                raise
        except LaunchError as error:
            raise EngineError(
                f"{self._name} cannot load kernel {entry}: {error.what}",
                fix="write the plan for this GPU: wpk optimize --target",
            ) from error
        self._loaded[image.digest] = _LoadedKernel(module, function)

    def launch(self, launch: BoundLaunch, stream: int) -> None:
        """Start a kernel on a stream, by its handle.

        Raises:
            LaunchError: It cannot be started.
        """
        function = self._loaded[launch.kernel].function
        parameters = Parameters(launch.entry, launch.arguments)
        config = configuration(self._driver, launch, stream)
        try:
            self._allow(function, launch)
            answer = self._driver.cuLaunchKernelEx(config, function, parameters.address, 0)
            checked("launch it", answer)
        except LaunchError as error:
            cluster = "" if launch.cluster == NO_CLUSTER else f", clusters of {launch.cluster}"
            raise LaunchError(
                f"{launch.entry} cannot be launched on {self._name} with grid {launch.grid}, "
                f"block {launch.block}{cluster}, {launch.shared_bytes} bytes of shared memory: "
                f"{error.what}",
                fix="write the plan for this GPU: wpk optimize --target",
            ) from error

    def clear(self) -> None:
        """Unload all."""
        while self._loaded:
            _, loaded = self._loaded.popitem()
            self._driver.cuModuleUnload(loaded.module)

    def _allow(self, function: Any, launch: BoundLaunch) -> None:
        """Raise a kernel's own limits to what the launch asks for."""
        limits = self._driver.CUfunction_attribute
        raised = {
            limits.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: launch.shared_bytes,
        }
        if prod(launch.cluster) > PORTABLE_CLUSTER:
            raised[limits.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = 1
        for limit, value in raised.items():
            checked("allow it", self._driver.cuFuncSetAttribute(function, limit, value))
