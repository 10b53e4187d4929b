"""A loaded plan, ready to execute."""

from collections.abc import Mapping
from contextlib import suppress
from math import prod
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from wpk.device import StreamDevice, executes, lies_on_gpu
from wpk.emulator import EmulatorProcess
from wpk.engine.bindings import Binding, Bindings, HostParts
from wpk.engine.bodies import Bodies
from wpk.engine.gpu_array import GpuArray
from wpk.engine.gpu_runs import GpuRuns
from wpk.engine.host_steps import HostSteps
from wpk.engine.inputs import all_dims, bind_inputs, require_mapping
from wpk.engine.memory_use import MemoryUse
from wpk.engine.placement import footprint, from_memory, to_memory
from wpk.engine.regenerate import regenerate
from wpk.engine.turn import Turn
from wpk.engine.weight_memory import WeightMemory
from wpk.errors import EngineError, LaunchError
from wpk.execution import Device, KernelImage
from wpk.kernel_source import KernelSource
from wpk.plan import KeptOutput, Plan, PlanBundle, Port, library_images
from wpk.runtime import RuntimeProcess

HostArrays = Mapping[str, NDArray[np.generic]]

_NOTHING: Mapping[str, int] = {}


class Engine:
    """Executes a plan on a device. Every step is its kernels' launches and nothing else.

    But for host steps: what no kernel computes ONNX Runtime executes, in a process of its own and in the
    machine's memory; and the host runs the engines of the bodies of control flow, as often as they are needed. Any thread may use it; calls from several take turns.

    Attributes:
        plan: What is executed.
        device: Where.
        runtime: Executes what no kernel computes.
        host_steps: Executes single steps that the host executes or drives.
    """

    def __init__(
        self,
        bundle: PlanBundle,
        device: Device,
        *,
        owns_device: bool = False,
        weights: WeightMemory | None = None,
    ) -> None:
        """Load kernels and weights; memory for activations comes with the first run.

        Args:
            bundle: The plan.
            device: Where to execute it.
            owns_device: Whether a process that the device runs in ends with the engine.
            weights: Memory on the device that is shared with other engines; of its own by default.

        Raises:
            PlanError: Its kernels are not those of this installation.
            EngineError: It was compiled for another GPU, or there is not enough memory.
        """
        self.plan: Plan = bundle.plan
        self.device = device
        self._process = device if isinstance(device, EmulatorProcess) else None
        self._owns_device = owns_device
        self._weights: dict[str, int] = {}
        self._weight_memory = weights or WeightMemory(device)
        if not executes_plan(self.plan, device):
            raise EngineError(
                f"the plan was compiled for {self.plan.arch}, and the GPU is {device.name}",
                fix="write a plan for this GPU: wpk optimize --target auto; or use --device cpu",
            )
        sources = regenerate(bundle.plan) if device.executes_source else _stored(bundle)
        streams = device if isinstance(device, StreamDevice) else None
        self._turn = Turn(streams)
        with self._turn:
            self.runtime = RuntimeProcess(bundle.models)
            self._bodies = Bodies()
            hosts = HostParts(self.runtime, self._bodies.driven)
            self._bindings = Bindings(self.plan, device, self._weights, self._wait, hosts)
            self._runs = GpuRuns(self.plan, streams, self._bindings) if streams else None
            self.host_steps = HostSteps(bundle, self.runtime, self._bodies.driven)
            try:
                self._bodies.load(bundle, device, self._body)
                self._load(bundle, sources)
                if streams:
                    streams.settle()  # a caller's stream would not wait for the weights
            except BaseException:
                self.close()
                raise

    @overload
    def run(self, inputs: HostArrays) -> dict[str, NDArray[np.generic]]: ...

    @overload
    def run(
        self,
        inputs: Mapping[str, Any],
        *,
        outputs: Mapping[str, Any] | None = None,
        stream: object = None,
    ) -> dict[str, Any]: ...

    def run(
        self,
        inputs: Mapping[str, Any],
        *,
        outputs: Mapping[str, Any] | None = None,
        stream: object = None,
    ) -> dict[str, Any]:
        """Execute the plan once.

        With NumPy arrays the inputs are copied to the device, the run is waited for, and outputs are new arrays.

        With arrays on the GPU nothing is copied or waited for. They are read and written where they lie (an
        output that is a part of a larger value inside the engine is copied there, on the GPU), and must stay
        as they are until the run has ended: they are dense, of the model's type and shape, at multiples of
        16 bytes. All inputs, and all outputs if any are given, are then on the GPU.

        Args:
            inputs: One array for each input of the model, of its exact type and shape; a free leading
                dimension takes the size that the arrays have. On the GPU: anything with ``__dlpack__`` or
                ``__cuda_array_interface__``.
            outputs: Arrays on the GPU to write to, one for each output.
            stream: Where the run is enqueued, behind all that was enqueued there: a handle, or a stream of
                pycuda, PyTorch, CuPy or cuda.core. Without it, a stream of the engine's that takes turns with
                the legacy default stream, which those libraries use unless told otherwise.

        Returns:
            One array for each output of the model: NumPy arrays, or those given, or `GpuArray`s of
            the engine, which its next run at the same sizes without ``outputs`` overwrites.

        Raises:
            EngineError: Names, types or shapes do not fit, an array cannot be used without a copy,
                or the engine was closed.
            LaunchError: A kernel failed; after an asynchronous run a later call says so.
        """
        with self._turn:
            require_mapping("inputs", inputs)
            asked = outputs is not None or stream is not None
            if asked or any(map(_lies_on_gpu, inputs.values())):
                return self._on_streams().run(inputs, outputs, stream)
            return self._run_on_host(inputs)

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Do as `run` does without outputs or a stream given: ``engine({"x": array})``."""
        return self.run(inputs)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """What `run` takes: names, types and shapes; a free dimension is its name."""
        return self.plan.inputs

    @property
    def outputs(self) -> tuple[Port | KeptOutput, ...]:
        """What `run` returns; of some only a run decides the shape."""
        return (*self.plan.outputs, *self.plan.kept_outputs)

    def __repr__(self) -> str:
        """The plan, where it is executed, and what goes in and out."""
        taken, given = (", ".join(map(str, side)) for side in (self.inputs, self.outputs))
        return f"<Engine: {self.plan!r} on {self.device.name}; {taken} -> {given}>"

    def _run_on_host(self, inputs: HostArrays) -> dict[str, NDArray[np.generic]]:
        arrays, dims = bind_inputs(self.plan.inputs, inputs)
        binding = self._bindings.at(dims)
        if self._process is not None:
            self._process.patience = _patience(self.plan, dims)
        self._wait()  # runs on other streams use the same memory
        for port in self.plan.inputs:
            value = self.plan.values[port.name]
            self.device.write(binding.address(port.name), to_memory(value, arrays[port.name], dims))
        binding.replay.replay()
        outputs = {}
        for port in self.plan.outputs:
            value = self.plan.values[port.name]
            memory = self.device.read(binding.address(port.name), footprint(value, dims))
            outputs[port.name] = from_memory(value, memory, dims)
        for kept in self.plan.kept_outputs:
            outputs[kept.name] = np.array(binding.kept[kept.name], kept.dtype.numpy)
        return outputs

    def upload(self, inputs: HostArrays) -> dict[str, GpuArray]:
        """Return copies of inputs on the GPU, for runs that copy nothing.

        Args:
            inputs: The inputs, as for `run`.

        Raises:
            EngineError: Names, types or shapes do not fit, or the engine is on no GPU.
        """
        with self._turn:
            arrays, _ = bind_inputs(self.plan.inputs, inputs)
            return self._on_streams().upload(arrays)

    def synchronize(self) -> None:
        """Wait until all runs have ended.

        Raises:
            LaunchError: One failed.
        """
        with self._turn:
            self._wait()

    @property
    def memory(self) -> MemoryUse:
        """What the engine holds on the device at the moment."""
        outputs = 0 if self._runs is None else self._runs.result_bytes
        pairs = zip(self._bindings.held_bytes, self._bodies.held_bytes, strict=True)
        arena, scratch = (own + within for own, within in pairs)
        return MemoryUse(self._weight_memory.bytes, arena, scratch, outputs)

    def bind(
        self, dims: Mapping[str, int] | None = None, external: Mapping[str, int] = _NOTHING
    ) -> Binding:
        """Return addresses and launches at sizes of the free dimensions, by default at the tuned ones.

        Args:
            dims: The sizes.
            external: Addresses of inputs and outputs that lie elsewhere (`wpk.engine.port_memory`).

        Raises:
            EngineError: A size is none that the plan allows, or needs more memory than there is.
        """
        with self._turn:
            return self._bindings.at(all_dims(self.plan, dims), external)

    def close(self) -> None:
        """Give all device memory back, once runs have ended; the engine cannot run afterwards."""
        if not self._turn.is_ours:
            return  # nothing of it is this process's
        with self._turn.lock:
            self._turn.is_over = True
            # A device that was closed has ended them; one where a kernel failed runs nothing more.
            with suppress(EngineError, LaunchError), self._turn.context:
                self._wait()
            if self._runs is not None:
                self._runs.close()
            self._bindings.close()
            self.runtime.close()
            self._bodies.close()
            while self._weights:
                self._weight_memory.give(self.plan.weights[self._weights.popitem()[0]].digest)
            if self._process is not None and self._owns_device:
                self._process.close()

    def __enter__(self) -> Self:
        """Return the engine itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def _wait(self) -> None:
        if self._runs is not None:
            self._runs.wait()

    def _on_streams(self) -> GpuRuns:
        if self._runs is None:
            raise EngineError(
                f"the engine executes on {self.device.name}, which uses no arrays or streams of a GPU",
                fix="give NumPy arrays alone, or load the plan with device='gpu'",
            )
        return self._runs

    def _body(self, bundle: PlanBundle) -> "Engine":
        """Load the engine of a body, which shares the weights' memory."""
        return Engine(bundle, self.device, weights=self._weight_memory)

    def _load(self, bundle: PlanBundle, sources: Mapping[str, KernelSource]) -> None:
        for digest, source in sources.items():
            self.device.load(KernelImage(digest, source, bundle.cubins[digest]))
        for image in library_images(self.plan):
            self.device.load(image)
        for name, array in sorted(bundle.weights.items()):
            digest = self.plan.weights[name].digest
            self._weights[name] = self._weight_memory.take(digest, array)


def _patience(plan: Plan, dims: Mapping[str, int]) -> float:
    """How many times longer than at the tuned sizes a kernel may take."""
    return max(1.0, prod(dims[name] / tuned for name, tuned in plan.free.items()))


def _lies_on_gpu(array: object) -> bool:
    return isinstance(array, GpuArray) or lies_on_gpu(array)


def executes_plan(plan: Plan, device: Device) -> bool:
    """Tell whether the plan was compiled for the device; the CPU executes any plan."""
    capability: tuple[int, int] | None = getattr(device, "capability", None)
    return capability is None or executes(plan.arch, capability)


def _stored(bundle: PlanBundle) -> dict[str, KernelSource]:
    """Return the units as the plan carries them: names of the entries, for devices that take cubins."""
    kernels = bundle.plan.kernels.items()
    return {
        digest: KernelSource(kernel.entry, bundle.sources[digest]) for digest, kernel in kernels
    }
