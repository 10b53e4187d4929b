"""The engine of a body of control flow, run with its ports in memory that it is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Protocol

from wpk.dims import evaluate
from wpk.engine.cells import Copier
from wpk.engine.port_memory import replaceable
from wpk.execution import Replay
from wpk.plan import Plan, Port

_ALIGNMENT = 16


class BodyBinding(Protocol):
    """A body's engine at the addresses of its ports."""

    @property
    def replay(self) -> Replay:
        """All its work."""

    def address(self, name: str) -> int:
        """Where a value lies."""


class BodyEngine(Protocol):
    """The engine of a body."""

    plan: Plan

    def bind(
        self, dims: Mapping[str, int] | None = None, external: Mapping[str, int] = ...
    ) -> BodyBinding:
        """Its launches, with ports in memory that is not its own."""


Copy = tuple[int, int, int]
"""From where, to where, how many bytes."""


@dataclass(frozen=True)
class BoundBody:
    """A body's engine at the addresses of its ports, to be started again and again.

    Attributes:
        copy: Copies within the device's memory.
        replay: Its work.
        before: Copies of inputs that cannot lie where they are.
        after: Copies of outputs likewise.
    """

    copy: Copier
    replay: Replay
    before: tuple[Copy, ...]
    after: tuple[Copy, ...]

    def start(self) -> None:
        """Start it, between its copies.

        Raises:
            LaunchError: It cannot be started, or failed.
        """
        for each in self.before:
            self.copy(*each)
        self.replay.replay()
        for each in self.after:
            self.copy(*each)


class BodyCall:
    """A body's engine at sizes of the free dimensions.

    Attributes:
        shapes: Of all its ports, by name.
        sizes: Bytes of all its ports, by name.
    """

    def __init__(self, engine: BodyEngine, copy: Copier, dims: Mapping[str, int]) -> None:
        """Take what is executed, what copies, and the sizes of the free dimensions of the plan around it."""
        plan = engine.plan
        self._engine, self._copy = engine, copy
        self._dims = {name: dims[name] for name in plan.free}
        self._direct = replaceable(plan, self._dims)
        ports = (*plan.inputs, *plan.outputs)
        self.shapes = {port.name: self._shape(port) for port in ports}
        self.sizes = {p.name: prod(self.shapes[p.name]) * p.dtype.bytes for p in ports}

    def bound(self, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> BoundBody:
        """Bind it to addresses of its ports, directly or by copies.

        Raises:
            EngineError: The sizes are none that its plan allows.
        """
        places = {**inputs, **outputs}
        external = {
            name: at for name, at in places.items() if name in self._direct and at % _ALIGNMENT == 0
        }
        plan, binding = self._engine.plan, self._engine.bind(self._dims, external)
        before = (
            (inputs[port.name], binding.address(port.name), self.sizes[port.name])
            for port in plan.inputs
            if port.name not in external
        )
        after = (
            (binding.address(port.name), outputs[port.name], self.sizes[port.name])
            for port in plan.outputs
            if port.name not in external
        )
        return BoundBody(self._copy, binding.replay, tuple(before), tuple(after))

    def _shape(self, port: Port) -> tuple[int, ...]:
        return tuple(evaluate(size, self._dims) for size in port.shape)
