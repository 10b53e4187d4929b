"""A step of control flow whose bodies are engines, at its addresses in a plan's memory.

What lies there as the bodies read it is used where it is. The rest, a view that is not dense or a tensor of
another type than the node's, goes through the machine's memory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import onnx

from wpk.closed_models import element_type_of
from wpk.control_flow import ControlFlow, read_control_flow
from wpk.dims import evaluate
from wpk.dtypes import DType
from wpk.engine.body_call import BodyEngine
from wpk.engine.cells import Cells
from wpk.engine.control_run import ControlRun
from wpk.engine.crossing_memory import Array, read_crossing, write_crossing
from wpk.execution import Device
from wpk.plan import Step
from wpk.problems import Crossing, Fallback


@dataclass(frozen=True)
class ControlStep:
    """A step, ready to be executed anywhere.

    Attributes:
        step: The step.
        problem: What it computes.
        control: How.
        given: Types that its inputs have for its bodies.
        made: Types that its bodies give.
        bodies: Engines of its bodies.
        device: Where they run.
        cells: Memory of its own there.
    """

    step: Step
    problem: Fallback
    control: ControlFlow
    given: tuple[DType, ...]
    made: tuple[DType, ...]
    bodies: tuple[BodyEngine, ...]
    device: Device
    cells: Cells

    @cached_property
    def run(self) -> ControlRun:
        """What executes it on dense memory."""
        return ControlRun(self.control, self.made, self.bodies, self.device, self.cells)


def control_step(
    step: Step, problem: Fallback, model: bytes, bodies: Sequence[BodyEngine], device: Device
) -> ControlStep:
    """Make a step ready.

    Args:
        step: Whose bodies are engines.
        problem: What it computes.
        model: The model of its node.
        bodies: Its bodies' engines.
        device: Where they run.
    """
    proto = onnx.load_model_from_string(model)
    control = read_control_flow(proto, problem.input_types)
    types = [[_type_of(info) for info in side] for side in (proto.graph.input, proto.graph.output)]
    captured = {number for body in control.bodies for number in body.captured}
    direct = set(proto.graph.node[0].input)
    given = (
        own if number in captured and info.name not in direct else told
        for number, (own, told, info) in enumerate(
            zip(problem.input_types, types[0], proto.graph.input, strict=True)
        )
    )
    made = tuple(types[1])
    return ControlStep(
        step, problem, control, tuple(given), made, tuple(bodies), device, Cells(device)
    )


@dataclass(frozen=True)
class ControlCall:
    """A step at its addresses.

    Attributes:
        ready: The step.
        address: Says where a value lies.
        dims: Values of the free dimensions.
        kept: Tensors in the machine's memory, which it adds to.
    """

    ready: ControlStep
    address: Callable[[str], int]
    dims: Mapping[str, int]
    kept: dict[str, Array]

    def execute(self) -> None:
        """Read, run the bodies, and write; what the device was given before is done then, or in order.

        Raises:
            LaunchError: A body failed, a loop does not end, or the device failed before.
        """
        ready, dims = self.ready, self.dims
        inputs, outputs = ready.step.inputs, ready.step.operator.outputs
        crossings = [each for each in ready.problem.x if each is not None]
        places = [
            self._dense(name, crossing, dtype)
            for name, crossing, dtype in zip(inputs, crossings, ready.given, strict=True)
        ]
        targets = [
            self.address(name)
            if crossing.tensor.dtype is dtype
            else ready.cells.at(f"result {name}", prod(shape_at(crossing, dims)) * dtype.bytes)
            for name, crossing, dtype in zip(
                outputs, ready.problem.results, ready.made, strict=False
            )
        ]
        found = ready.run.run(places, targets, dims)
        self.kept.update(zip(outputs[len(targets) :], found, strict=True))
        for name, crossing, dtype, place in zip(
            outputs, ready.problem.results, ready.made, targets, strict=False
        ):
            if crossing.tensor.dtype is not dtype:
                shape = shape_at(crossing, dims)
                data = ready.device.read(place, prod(shape) * dtype.bytes)
                array = data.view(dtype.numpy).reshape(shape)
                write_crossing(ready.device, self.address(name), crossing, array)

    def _dense(self, name: str, crossing: Crossing, dtype: DType) -> int:
        """Where a tensor lies dense in a type: in its place, or in one of the step's own."""
        sizes = tuple(evaluate(each, self.dims) for each in crossing.access.extents)
        dense = tuple(prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
        same = crossing.tensor.dtype is dtype
        if same and _strides(crossing.tensor.strides, sizes) == _strides(dense, sizes):
            return self.address(name)
        array = read_crossing(self.ready.device, self.address(name), crossing, self.dims)
        return placed(self.ready.device, self.ready.cells, f"input {name} {dtype}", array, dtype)


def placed(device: Device, cells: Cells, name: str, array: Array, dtype: DType) -> int:
    """Write an array, in a type, to a piece of memory of this name."""
    data = np.ascontiguousarray(array.astype(dtype.numpy, copy=False)).reshape(-1).view(np.uint8)
    place = cells.at(name, data.size)
    device.write(place, data)
    return place


def _strides(strides: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Strides of the axes that have more than one element."""
    return [stride for stride, size in zip(strides, sizes, strict=True) if size > 1]


def shape_at(crossing: Crossing, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an ONNX tensor at sizes of the free dimensions."""
    return tuple(evaluate(size, dims) for size in crossing.shape)


def _type_of(info: onnx.ValueInfoProto) -> DType:
    dtype = element_type_of(info.type.tensor_type.elem_type)
    if dtype is None:
        raise ValueError(f"'{info.name}' has a type that no engine holds")
    return dtype
