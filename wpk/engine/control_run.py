"""Control flow on a device: the host looks at the condition, and runs the bodies' engines as often as needed.

    If      condition -> out of the device's memory -> replay of one body
    Loop    states -> A;  body A -> B, B -> A, A -> B, ...;  the last -> outputs

A body reads and writes the memory that it is given wherever its ports can lie there (`wpk.engine.port_memory`).
States lie in two places that take turns; parts of what is sliced or collected are copied.
"""

import time
from collections.abc import Mapping, Sequence
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wpk.control_flow import Body, ControlFlow, Source, Turns
from wpk.device import StreamDevice
from wpk.dims import evaluate
from wpk.engine.port_memory import replaceable
from wpk.errors import LaunchError
from wpk.execution import Device, Replay
from wpk.plan import Plan, Port

RUN_SECONDS = 120.0
"""For all turns of one execution; a loop that takes longer does not end."""

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


class Cells:
    """Pieces of device memory by name, allocated when they are first asked for."""

    def __init__(self, device: Device) -> None:
        """Begin with none."""
        self._device = device
        self._places: dict[str, tuple[int, int]] = {}

    @property
    def bytes(self) -> int:
        """What is allocated."""
        return sum(size for _, size in self._places.values())

    def at(self, name: str, size: int) -> int:
        """The address of the piece of this name, which always has this size."""
        if name not in self._places:
            self._places[name] = self._device.allocate(max(size, 1)), size
        return self._places[name][0]

    def close(self) -> None:
        """Give all of them back."""
        while self._places:
            self._device.free(self._places.popitem()[1][0])


class ControlRun:
    """A node with bodies, whose inputs and outputs lie dense in the device's memory."""

    def __init__(
        self,
        control: ControlFlow,
        bodies: Sequence[BodyEngine],
        device: Device,
        cells: Cells,
        limit_seconds: float = RUN_SECONDS,
    ) -> None:
        """Take what is executed.

        Args:
            control: What the node does.
            bodies: Engines of its bodies.
            device: Where everything lies.
            cells: Memory for states and parts.
            limit_seconds: For all turns of one execution.
        """
        self._control, self._bodies, self._device = control, bodies, device
        self._cells, self._limit = cells, limit_seconds

    def run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Execute it.

        Args:
            inputs: Addresses of the inputs of the node's model, in the types that its body reads.
            outputs: Addresses of its outputs, likewise.

        Raises:
            LaunchError: It does not end, or a body failed.
        """
        if isinstance(self._control, Turns):
            self._take_turns(self._control, self._bodies[0], inputs, outputs)
            return
        taken = 0 if self._condition(self._control.condition, inputs) else 1
        body, engine = self._control.bodies[taken], self._bodies[taken]
        self._execute(
            engine, _captured(body, inputs), dict(zip(body.outputs, outputs, strict=True))
        )

    def _take_turns(
        self, turns: Turns, engine: BodyEngine, inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        (body,) = turns.bodies
        sizes = {port.name: _bytes(port) for port in (*engine.plan.inputs, *engine.plan.outputs)}
        first = 2 if turns.is_loop else 0
        given, made = body.given, body.outputs[1:] if turns.is_loop else body.outputs
        names = given[first : first + len(turns.states)]
        states = [
            [self._cells.at(f"state {number}, {side}", sizes[name]) for side in (0, 1)]
            for number, name in enumerate(names)
        ]
        for source, pair, name in zip(turns.states, states, names, strict=True):
            self._fill(source, inputs, pair[0], sizes[name])
        places = _captured(body, inputs)
        places |= {name: self._cells.at(name, sizes[name]) for name in given[:first]}
        cut = given[first + len(turns.states) :]
        places |= {name: self._cells.at(name, sizes[name]) for name in cut}
        parts = made[len(turns.states) :]
        results = {name: self._cells.at(name, sizes[name]) for name in parts}
        if turns.is_loop:
            results[body.outputs[0]] = self._cells.at(body.outputs[0], sizes[body.outputs[0]])
            self._device.write(places[given[1]], np.ones(1, np.uint8))
        collected = [
            at for at, which in zip(outputs, turns.results, strict=True) if which >= len(states)
        ]
        order = [which - len(states) for which in turns.results if which >= len(states)]
        count = self._count(turns.count, inputs)
        going = turns.condition is None or self._condition(turns.condition, inputs)
        begun, turn = time.monotonic(), 0
        while going and (count is None or turn < count):
            if turns.is_loop:
                self._device.write(places[given[0]], np.array([turn], np.int64).view(np.uint8))
            for each, name in zip(turns.sliced, cut, strict=True):
                at = self._part(turn, count, backwards=each.backwards) * sizes[name]
                self._fill(each.source, inputs, places[name], sizes[name], at)
            now = {name: pair[turn % 2] for name, pair in zip(names, states, strict=True)}
            then = {
                name: pair[(turn + 1) % 2]
                for name, pair in zip(made[: len(states)], states, strict=True)
            }
            self._execute(engine, places | now, results | then)
            for target, number in zip(collected, order, strict=True):
                name, way = parts[number], turns.collected[number]
                at = self._part(turn, count, backwards=way.backwards) * sizes[name]
                self._copy(results[name], target + at, sizes[name])
            turn += 1
            if turns.is_loop:
                going = bool(self._device.read(results[body.outputs[0]], 1)[0])
            self._require_end(begun, turn)
        for at, which in zip(outputs, turns.results, strict=True):
            if which < len(states):
                self._copy(states[which][turn % 2], at, sizes[names[which]])

    def _require_end(self, begun: float, turn: int) -> None:
        if time.monotonic() - begun > self._limit:
            raise LaunchError(
                f"a loop took {turn} turns in {self._limit:g} s, and did not end",
                fix="give it inputs that end it",
            )

    @staticmethod
    def _part(turn: int, count: int | None, *, backwards: bool) -> int:
        """Which part of what is sliced or collected belongs to a turn."""
        return turn if not backwards or count is None else count - 1 - turn

    def _count(self, source: Source | None, inputs: Sequence[int]) -> int | None:
        if source is None:
            return None
        if isinstance(source, int):
            return int(self._device.read(inputs[source], 8).view(np.int64)[0])
        return int(source.reshape(()))

    def _condition(self, source: Source, inputs: Sequence[int]) -> bool:
        if isinstance(source, int):
            return bool(self._device.read(inputs[source], 1)[0])
        return bool(source.reshape(()))

    def _fill(
        self, source: Source | None, inputs: Sequence[int], target: int, size: int, at: int = 0
    ) -> None:
        """Copy a part of an input, or of a constant, to a place."""
        if isinstance(source, int):
            self._copy(inputs[source] + at, target, size)
        elif source is not None:
            self._device.write(target, _flat(source)[at : at + size])

    def _copy(self, source: int, target: int, size: int) -> None:
        if isinstance(self._device, StreamDevice):
            self._device.copy_on(self._device.stream, source, target, size)
        else:
            self._device.write(target, self._device.read(source, size))

    def _execute(
        self, engine: BodyEngine, inputs: Mapping[str, int], outputs: Mapping[str, int]
    ) -> None:
        """Run a body's engine with its ports at these addresses."""
        places = {**inputs, **outputs}
        direct = replaceable(engine.plan, {})
        external = {
            name: at for name, at in places.items() if name in direct and at % _ALIGNMENT == 0
        }
        binding = engine.bind(None, external)
        for port in engine.plan.inputs:
            if port.name not in external:
                self._copy(inputs[port.name], binding.address(port.name), _bytes(port))
        binding.replay.replay()
        for port in engine.plan.outputs:
            if port.name not in external:
                self._copy(binding.address(port.name), outputs[port.name], _bytes(port))


def _captured(body: Body, inputs: Sequence[int]) -> dict[str, int]:
    """Where a body finds what it reads from outside."""
    return {name: inputs[n] for name, n in zip(body.read, body.captured, strict=True)}


def _bytes(port: Port) -> int:
    return prod(evaluate(size, {}) for size in port.shape) * port.dtype.bytes


def _flat(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
