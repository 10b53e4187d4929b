"""Single host steps, executed on arrays: what ONNX Runtime executes, and control flow whose bodies are engines."""

from collections.abc import Mapping
from math import prod

from wpk.closed_models import read_closed_model
from wpk.control_flow import Turns
from wpk.engine.cells import Cells
from wpk.engine.control_call import ControlStep, placed, shape_at
from wpk.engine.crossing_memory import Array
from wpk.plan import PlanBundle, Step
from wpk.runtime import RuntimeProcess


class HostSteps:
    """The host steps of an engine, to be executed alone.

    Args:
        bundle: The plan.
        runtime: Executes what no kernel computes.
        driven: Steps whose bodies are engines, by their names.
    """

    def __init__(
        self, bundle: PlanBundle, runtime: RuntimeProcess, driven: Mapping[str, ControlStep]
    ) -> None:
        """Take what executes them."""
        self._bundle, self._runtime, self._driven = bundle, runtime, driven

    @property
    def turns(self) -> dict[str, int]:
        """How many turns each loop took when it was executed last, by the names of its operator."""
        return {
            name: ready.run.turns
            for name, ready in self._driven.items()
            if isinstance(ready.control, Turns)
        }

    def run(
        self, step: Step, memory: Mapping[str, Array], dims: Mapping[str, int]
    ) -> dict[str, Array]:
        """Return what a step gives, by tensor, in the types that memory has.

        Args:
            step: A host step.
            memory: Tensors by name; those that the step gives say their types.
            dims: Values of the free dimensions.

        Raises:
            EngineError: ONNX Runtime does not take the model.
            LaunchError: It cannot be executed.
        """
        if step.fallback is None:
            raise ValueError(f"{step.operator.name} is no host step")
        model = read_closed_model(self._bundle.models[step.fallback.model])
        given = [memory[port.name] for port in model.inputs]
        ready = self._driven.get(step.operator.name)
        found = (
            self._runtime.run(step.fallback.model, given)
            if ready is None
            else _drive(ready, given, dims)
        )
        return {
            port.name: array.astype(memory[port.name].dtype)
            for port, array in zip(model.outputs, found, strict=True)
        }


def _drive(ready: ControlStep, arrays: list[Array], dims: Mapping[str, int]) -> list[Array]:
    """Execute control flow on arrays."""
    device, cells = ready.device, Cells(ready.device)
    shapes = [shape_at(each, dims) for each in ready.problem.results]
    sizes = [prod(shape) * dtype.bytes for shape, dtype in zip(shapes, ready.made, strict=False)]
    try:
        inputs = [
            placed(device, cells, f"input {number}", array, dtype)
            for number, (array, dtype) in enumerate(zip(arrays, ready.given, strict=True))
        ]
        outputs = [cells.at(f"output {number}", size) for number, size in enumerate(sizes)]
        kept = ready.run.run(inputs, outputs, dims)
        placed_ones = [
            device.read(at, size).view(dtype.numpy).reshape(shape)
            for at, size, dtype, shape in zip(outputs, sizes, ready.made, shapes, strict=False)
        ]
        return placed_ones + kept
    finally:
        cells.close()
