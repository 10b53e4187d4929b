"""A loaded plan, ready to execute."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wpk.engine.binding import StepAddresses, arena, bind_step, element_bytes, workspace_bytes
from wpk.engine.devices import open_device
from wpk.engine.inputs import bind_inputs
from wpk.engine.placement import footprint, from_memory, to_memory
from wpk.engine.plan import Plan, PlanBundle
from wpk.engine.plan_checks import check_sizes
from wpk.engine.plan_file import read_plan
from wpk.engine.regenerate import regenerate
from wpk.engine.weights_file import array_bytes
from wpk.execution import BoundLaunch, Device, KernelImage
from wpk.kernel_source import KernelSource
from wpk.lowering.memory import MemoryPlan

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
        self._bound: _Bound | None = None

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
        bound = self._bind(dims)
        for port in self.plan.inputs:
            value = self.plan.values[port.name]
            self.device.write(bound.address(port.name), to_memory(value, arrays[port.name], dims))
        for launch in bound.launches:
            self.device.launch(launch)
        outputs = {}
        for port in self.plan.outputs:
            value = self.plan.values[port.name]
            memory = self.device.read(bound.address(port.name), footprint(value, dims))
            outputs[port.name] = from_memory(value, memory, dims)
        return outputs

    def close(self) -> None:
        """Give all device memory back; the engine cannot run afterwards."""
        self._release()
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

    def _bind(self, dims: dict[str, int]) -> "_Bound":
        if self._bound is None or self._bound.dims != dims:
            self._release()
            check_sizes(self.plan, dims)
            self._bound = _Bound(self.plan, self.device, dims, self._weights)
        return self._bound

    def _release(self) -> None:
        if self._bound is not None:
            self._bound.free(self.device)
            self._bound = None


def _stored(bundle: PlanBundle) -> dict[str, KernelSource]:
    """The units as the plan carries them: names of the entries for devices that take cubins."""
    kernels = bundle.plan.kernels.items()
    return {
        digest: KernelSource(kernel.entry, bundle.sources[digest]) for digest, kernel in kernels
    }


class _Bound:
    """Memory and launches for one assignment of the free dimensions."""

    def __init__(
        self, plan: Plan, device: Device, dims: dict[str, int], weights: Mapping[str, int]
    ) -> None:
        self.dims = dims
        self._plan = plan
        self._memory: MemoryPlan = arena(plan, dims)
        self._arena = device.allocate(max(self._memory.arena_bytes, _ALIGNMENT))
        scratch = max((workspace_bytes(step, dims) for step in plan.steps), default=0)
        self._workspace = device.allocate(max(scratch, _ALIGNMENT))
        self.launches: list[BoundLaunch] = []
        for step in plan.steps:
            addresses = StepAddresses(
                tuple(weights[n] if n in weights else self.address(n) for n in step.inputs),
                element_bytes(plan, step),
                tuple(self.address(name) for name in step.operator.outputs),
                self._workspace,
            )
            self.launches += bind_step(step, addresses, dims)

    def address(self, name: str) -> int:
        value = self._plan.values[name]
        return self._arena + self._memory.offsets[value.buffer] + value.offset

    def free(self, device: Device) -> None:
        device.free(self._arena)
        device.free(self._workspace)
