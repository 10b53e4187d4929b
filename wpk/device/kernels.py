"""Cubins on a GPU: loaded once, launched with values for their arguments."""

from typing import Any

import numpy as np

from wpk.errors import EngineError, LaunchError
from wpk.execution import BoundLaunch, KernelImage, Pointer


class CudaKernels:
    """The kernels that are loaded on one GPU. Its context is current whenever this is called."""

    def __init__(self, driver: Any, name: str) -> None:
        """Begin with none.

        Args:
            driver: ``pycuda.driver``.
            name: Of the GPU, for messages.
        """
        self._cuda = driver
        self._name = name
        self._functions: dict[str, tuple[Any, Any]] = {}

    def load(self, image: KernelImage) -> None:
        """Load a cubin, once.

        Raises:
            EngineError: The GPU cannot execute it, e.g. it was built for another architecture.
        """
        if image.digest in self._functions:
            return
        try:
            module = self._cuda.module_from_buffer(image.cubin)
            function = module.get_function(image.source.entry)
        except self._cuda.Error as error:
            raise EngineError(
                f"{self._name} cannot load kernel {image.source.entry}: {error}",
                fix="write the plan for this GPU: wpk optimize --target",
            ) from error
        self._functions[image.digest] = (module, function)

    def launch(self, launch: BoundLaunch, stream: Any) -> None:
        """Start a kernel on a stream of pycuda's.

        Raises:
            LaunchError: It cannot be started.
        """
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
                stream=stream,
            )
        except self._cuda.Error as error:
            raise LaunchError(
                f"{launch.entry} cannot be launched on {self._name} with grid {launch.grid}, "
                f"block {launch.block}, {launch.shared_bytes} bytes of shared memory: {error}",
                fix="write the plan for this GPU: wpk optimize --target",
            ) from error

    def clear(self) -> None:
        """Unload all."""
        self._functions.clear()


def _value(entry: str, argument: object) -> np.generic:
    if isinstance(argument, Pointer):
        return np.uintp(argument.address)
    if isinstance(argument, int):
        return np.int32(argument)
    raise LaunchError(
        f"{entry} takes a tensor map, which this version does not make",
        fix="optimize the model again with this version of wpk",
    )
