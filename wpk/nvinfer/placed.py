"""An engine with memory for its inputs and outputs: executed on arrays, captured, and profiled."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wpk.device import CudaDevice
from wpk.execution import BoundCall, Replay
from wpk.nvinfer.calls import EngineCalls
from wpk.nvinfer.session import EngineSession

Arrays = Mapping[str, NDArray[np.generic]]

_POISON = 0xFF
"""Bytes of outputs before an execution: a NaN in every floating type."""

WARM_UP = 3
"""Executions before those that are profiled."""

_NUMBERS = itertools.count()


class PlacedEngine:
    """An engine at certain sizes on one device. Call `close` before the device is closed."""

    def __init__(
        self, session: EngineSession, device: CudaDevice, calls: EngineCalls, inputs: Arrays
    ) -> None:
        """Allocate, and copy the inputs.

        Args:
            session: The engine, which this one closes.
            device: Where, opened with ``calls`` as its libraries.
            calls: What executes it there.
            inputs: Arrays by name, whose shapes are the engine's from now on.

        Raises:
            TensorRTError: The engine does not take such shapes.
            EngineError: There is not enough memory.
        """
        self._session, self._device, self._calls = session, device, calls
        self._input_shapes = {name: array.shape for name, array in inputs.items()}
        with device.active():
            shapes = session.resize(self._input_shapes)
        self._shapes = [shapes[each.name] for each in session.tensors]
        sizes = [
            prod(shape) * each.dtype.bytes
            for each, shape in zip(session.tensors, self._shapes, strict=True)
        ]
        self._memory = [(device.allocate(max(1, size)), size) for size in sizes]
        self._name = f"engine {next(_NUMBERS)}"
        calls.add(self._name, session)
        self._call = BoundCall(self._name, tuple(address for address, _ in self._memory), 0)
        self._write(inputs)
        device.launch(self._call)  # an engine is captured only behind an execution
        device.synchronize()
        self._replay = device.capture([self._call])

    @property
    def replay(self) -> Replay:
        """An execution on the arrays that were given last."""
        return self._replay

    def run(self, inputs: Arrays) -> dict[str, NDArray[np.generic]]:
        """Execute on other arrays of the same shapes; the outputs by name.

        Raises:
            LaunchError: The execution failed.
        """
        self._write(inputs)
        tensors = list(zip(self._session.tensors, self._shapes, self._memory, strict=True))
        for tensor, _, (address, size) in tensors:
            if not tensor.is_input and size:
                self._device.fill(address, size, _POISON)
        self._replay.replay()
        self._device.synchronize()
        return {
            tensor.name: self._device.read(address, size).view(tensor.dtype.numpy).reshape(shape)
            for tensor, shape, (address, size) in tensors
            if not tensor.is_input
        }

    def layers(self) -> str:
        """What the engine inspector says of the layers, as JSON."""
        return self._session.layers()

    def profiled(self, profiler: Any, executions: int) -> list[list[tuple[str, float]]]:
        """Execute with a profiler of `wpk.nvinfer.new_profiler`; what it was told of each execution."""
        with self._device.active():
            session = self._session.profiled(profiler)
            session.resize(self._input_shapes)
        name = f"{self._name}, profiled"
        self._calls.add(name, session)
        try:
            call = replace(self._call, image=name)
            return [self._told(call, profiler) for _ in range(WARM_UP + executions)][WARM_UP:]
        finally:
            self._calls.remove(name)

    def _told(self, call: BoundCall, profiler: Any) -> list[tuple[str, float]]:
        self._device.launch(call)
        self._device.synchronize()
        told: list[tuple[str, float]] = profiler.taken()
        return told

    def close(self) -> None:
        """Free the memory and let go of the engine."""
        self._calls.remove(self._name)
        while self._memory:
            self._device.free(self._memory.pop()[0])

    def __enter__(self) -> Self:
        """The engine itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def _write(self, inputs: Arrays) -> None:
        for tensor, (address, size) in zip(self._session.tensors, self._memory, strict=True):
            if tensor.is_input and size:
                array = np.ascontiguousarray(inputs[tensor.name], tensor.dtype.numpy)
                self._device.write(address, array.reshape(-1).view(np.uint8))
