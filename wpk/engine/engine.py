"""A loaded plan, ready to execute."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wpk.engine.bindings import Binding, Bindings
from wpk.engine.devices import open_device
from wpk.engine.inputs import bind_inputs
from wpk.engine.placement import footprint, from_memory, to_memory
from wpk.engine.plan import Plan, PlanBundle
from wpk.engine.plan_file import read_plan
from wpk.engine.regenerate import regenerate
from wpk.engine.weights_file import array_bytes
from wpk.execution import Device, KernelImage
from wpk.kernel_source import KernelSource

_ALIGNMENT = 256


def load(path: str | os.PathLike[str], device: str = "auto") -> "Engine":
    """Read a plan and make it ready on a device.

    Args:
        path: The plan file.
        device: ``cpu`` (the emulator), ``gpu``, or ``auto``: a GPU that the plan was compiled for
            where there is one, else the CPU.

    Raises:
        PlanError: The file is damaged, or its kernels are not those of this installation.
        EngineError: There is no such device.
    """
    return Engine(read_plan(Path(path)), open_device(device))


class Engine:
    """Executes a plan on a device. Every step is its kernels' launches and nothing else.

    Attributes:
        plan: What is executed.
        device: Where.
    """

    def __init__(self, bundle: PlanBundle, device: Device) -> None:
        """Load kernels and weights; memory for activations comes with the first run."""
        self.plan: Plan = bundle.plan
        self.device = device
        sources = regenerate(bundle.plan) if device.executes_source else _stored(bundle)
        for digest, source in sources.items():
            device.load(KernelImage(digest, source, bundle.cubins[digest]))
        self._weights = {
            name: self._upload(array) for name, array in sorted(bundle.weights.items())
        }
        self._bindings = Bindings(self.plan, device, self._weights)

    def run(self, inputs: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
        """Execute the plan once.

        Args:
            inputs: One array for each input of the model, of its exact type and shape; a free
                leading dimension takes the size that the arrays have.

        Returns:
            One array for each output of the model.

        Raises:
            EngineError: Names, types or shapes do not fit.
            LaunchError: A kernel failed.
        """
        arrays, dims = bind_inputs(self.plan, inputs)
        bound = self._bindings.at(dims)
        for port in self.plan.inputs:
            value = self.plan.values[port.name]
            self.device.write(bound.address(port.name), to_memory(value, arrays[port.name], dims))
        bound.replay.replay()
        outputs = {}
        for port in self.plan.outputs:
            value = self.plan.values[port.name]
            memory = self.device.read(bound.address(port.name), footprint(value, dims))
            outputs[port.name] = from_memory(value, memory, dims)
        return outputs

    def bind(self, dims: Mapping[str, int] | None = None) -> Binding:
        """Addresses and launches at sizes of the free dimensions; at the tuned ones by default.

        Raises:
            EngineError: A size is none that the plan allows, or needs more memory than there is.
        """
        return self._bindings.at({**self.plan.free, **(dims or {})})

    def close(self) -> None:
        """Give all device memory back; the engine cannot run afterwards."""
        self._bindings.close()
        while self._weights:
            self.device.free(self._weights.popitem()[1])

    def __enter__(self) -> Self:
        """The engine itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def _upload(self, array: NDArray[np.generic]) -> int:
        address = self.device.allocate(max(array.nbytes, _ALIGNMENT))
        self.device.write(address, np.frombuffer(array_bytes(array), np.uint8))
        return address


def _stored(bundle: PlanBundle) -> dict[str, KernelSource]:
    """The units as the plan carries them: names of the entries for devices that take cubins."""
    kernels = bundle.plan.kernels.items()
    return {
        digest: KernelSource(kernel.entry, bundle.sources[digest]) for digest, kernel in kernels
    }
