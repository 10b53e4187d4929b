"""Control flow on a device: the host looks at the condition, and runs the bodies' engines as often as needed.

    If      condition -> out of the device's memory -> replay of one body
    Loop    states -> A;  body A -> B, B -> A, A -> B, ...;  the last -> outputs

A body reads and writes the memory that it is given wherever its ports can lie there (`wpk.engine.port_memory`).
"""

from collections.abc import Mapping, Sequence

from wpk.control_flow import Body, Conditional, ControlFlow
from wpk.dtypes import DType
from wpk.engine.body_call import BodyCall, BodyEngine
from wpk.engine.cells import Cells
from wpk.engine.crossing_memory import Array
from wpk.engine.deciding import condition_of
from wpk.engine.turns_run import TurnsRun
from wpk.execution import Device

_RUN_SECONDS = 120.0
"""For all turns of one execution; a loop that takes longer does not end."""


class ControlRun:
    """A node with bodies, whose inputs and outputs lie dense in the device's memory.

    Attributes:
        turns: How many turns the last execution took; 0 before, and of an If.
    """

    def __init__(
        self,
        control: ControlFlow,
        made: Sequence[DType],
        bodies: Sequence[BodyEngine],
        device: Device,
        cells: Cells,
    ) -> None:
        """Take what is executed.

        Args:
            control: What the node does.
            made: Types of the outputs of the node's model.
            bodies: Engines of its bodies.
            device: Where everything lies.
            cells: Memory for states and parts.
        """
        self._control, self._made, self._bodies = control, tuple(made), bodies
        self._device, self._cells = device, cells
        self.turns = 0
        self._calls: tuple[Mapping[str, int], Sequence[BodyCall]] | None = None

    def run(
        self, inputs: Sequence[int], outputs: Sequence[int], dims: Mapping[str, int]
    ) -> list[Array]:
        """Execute it.

        Args:
            inputs: Addresses of the inputs of the node's model, in the types that its body reads.
            outputs: Addresses of its outputs, likewise, but for those behind them whose shape the run decides.
            dims: Values of the free dimensions.

        Returns:
            These.

        Raises:
            LaunchError: It does not end, gives other shapes than it should, or a body failed.
        """
        calls = self._calls_at(dims)
        types = self._made[len(outputs) :]
        if isinstance(self._control, Conditional):
            taken = 0 if condition_of(self._control.condition, self._device, inputs) else 1
            return self._branch(self._control.bodies[taken], calls[taken], inputs, outputs, types)
        run = TurnsRun(self._control, calls[0], self._device, self._cells, _RUN_SECONDS)
        self.turns, found = run.run(inputs, outputs, types, dims)
        return found

    def _calls_at(self, dims: Mapping[str, int]) -> Sequence[BodyCall]:
        """The bodies at these sizes; those of the last execution where the sizes are the same."""
        if self._calls is None or self._calls[0] != dims:
            made = [BodyCall(each, self._cells.copy, dims) for each in self._bodies]
            self._calls = dict(dims), made
        return self._calls[1]

    def _branch(
        self,
        body: Body,
        call: BodyCall,
        inputs: Sequence[int],
        outputs: Sequence[int],
        types: Sequence[DType],
    ) -> list[Array]:
        own = body.outputs[len(outputs) :]
        places = [self._cells.at(f"result {name}", call.sizes[name]) for name in own]
        call.bound(
            {name: inputs[n] for name, n in zip(body.read, body.captured, strict=True)},
            dict(zip(body.outputs, (*outputs, *places), strict=True)),
        ).start()
        return [
            self._device.read(at, call.sizes[name]).view(dtype.numpy).reshape(call.shapes[name])
            for name, at, dtype in zip(own, places, types, strict=True)
        ]
