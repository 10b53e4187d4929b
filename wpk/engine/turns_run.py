"""The turns of a Loop or a Scan on a device.

States lie in two places that take turns; parts of what is sliced or collected are copied.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.control_flow import Sliced, Source, Turns
from wpk.dims import evaluate
from wpk.dtypes import DType
from wpk.engine.body_call import BodyCall, BoundBody
from wpk.engine.cells import Cells
from wpk.engine.collection import Collection, other_number
from wpk.engine.crossing_memory import Array
from wpk.engine.deciding import condition_of, count_of
from wpk.errors import LaunchError
from wpk.execution import Device

_NUMBERS = 4096
"""Of turns, which lie on the device ready to be copied."""


@dataclass(frozen=True)
class _Ports:
    """The ports of a body: what it is given, and what it gives."""

    given: tuple[str, ...]
    states: tuple[str, ...]
    parts: tuple[str, ...]
    held: str | None
    next_states: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class _Memory:
    """Where everything of an execution lies, by the names of ports.

    Attributes:
        states: The two places of each state.
        places: What the body is given beside the states.
        results: What it gives beside them.
        collections: Where parts of results go.
        bodies: The body of even turns and that of odd ones, between which states change places.
    """

    states: Sequence[tuple[int, int]]
    places: Mapping[str, int]
    results: Mapping[str, int]
    collections: Sequence[Collection]
    bodies: Sequence[BoundBody]


class TurnsRun:
    """One execution of a Loop or a Scan.

    Args:
        turns: What is executed.
        call: Its body.
        device: Where everything lies.
        cells: Memory for states and parts.
        limit_seconds: For all turns.
    """

    def __init__(
        self, turns: Turns, call: BodyCall, device: Device, cells: Cells, limit_seconds: float
    ) -> None:
        """Take what is executed."""
        self._turns, self._call, self._device = turns, call, device
        self._cells, self._limit = cells, limit_seconds
        self._ports = _ports_of(turns)

    def run(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        types: Sequence[DType],
        dims: Mapping[str, int],
    ) -> tuple[int, list[Array]]:
        """Execute it; see `ControlRun.run`.

        Args:
            inputs: Addresses of the inputs.
            outputs: Addresses of the outputs that have some.
            types: Of the others.
            dims: Values of the free dimensions.

        Returns:
            How many turns it took, and the others.

        Raises:
            LaunchError: It does not end, gives other shapes than it should, or a body failed.
        """
        turns, count = self._turns, None
        if turns.count is not None:
            count = count_of(turns.count, self._device, inputs, dims)
        memory = self._prepared(inputs, outputs, count, dims)
        going = turns.condition is None or condition_of(turns.condition, self._device, inputs)
        begun, turn = time.monotonic(), 0
        while going and (count is None or turn < count):
            self._take(turn, memory, inputs, count)
            turn += 1
            if turns.may_end and self._ports.held is not None:
                going = bool(self._device.read(memory.results[self._ports.held], 1)[0])
            self._require_end(begun, turn)
        for at, which in zip(outputs, turns.results, strict=False):
            if which < len(memory.states):
                size = self._call.sizes[self._ports.states[which]]
                self._cells.copy(memory.states[which][turn % 2], at, size)
        return turn, self._collected(memory.collections, types, turn)

    def _prepared(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        count: int | None,
        dims: Mapping[str, int],
    ) -> _Memory:
        """Give everything its place, and the states what they are at first."""
        turns, ports, sizes = self._turns, self._ports, self._call.sizes
        states = [
            (self._cells.at(f"state {each}, 0", size), self._cells.at(f"state {each}, 1", size))
            for each, size in enumerate(sizes[name] for name in ports.states)
        ]
        for source, pair, name in zip(turns.states, states, ports.states, strict=True):
            self._fill(source, inputs, pair[0], sizes[name])
        (body,) = turns.bodies
        places = {name: inputs[n] for name, n in zip(body.read, body.captured, strict=True)}
        places |= {name: self._own(name) for name in (*ports.given, *ports.parts)}
        results = {name: self._own(name) for name in ports.results}
        if ports.held is not None:
            results[ports.held] = self._own(ports.held)
            self._device.write(places[ports.given[1]], np.ones(1, np.uint8))
        bodies = [
            self._call.bound(
                places | {n: pair[now] for n, pair in zip(ports.states, states, strict=True)},
                results
                | {n: pair[1 - now] for n, pair in zip(ports.next_states, states, strict=True)},
            )
            for now in (0, 1)
        ]
        return _Memory(states, places, results, self._collections(outputs, count, dims), bodies)

    def _take(self, turn: int, memory: _Memory, inputs: Sequence[int], count: int | None) -> None:
        """Start one turn, between the copies of its parts."""
        turns, ports, sizes = self._turns, self._ports, self._call.sizes
        if turns.is_numbered:
            self._number(turn, memory.places[ports.given[0]])
        for each, name in zip(turns.sliced, ports.parts, strict=True):
            self._cut(each, inputs, memory.places[name], sizes[name], turn, count)
        memory.bodies[turn % 2].start()
        for collection in memory.collections:
            at, name = collection.place(turn), collection.name
            self._cells.copy(memory.results[name], at, sizes[name])

    def _collections(
        self, outputs: Sequence[int], count: int | None, dims: Mapping[str, int]
    ) -> list[Collection]:
        """Where the parts of each output go that has one of each turn: those with a place first."""
        turns, found = self._turns, []
        addresses = [*outputs, *[None] * (len(turns.results) - len(outputs))]
        for at, which in zip(addresses, turns.results, strict=True):
            number = which - len(turns.states)
            if number < 0:
                continue
            each, name = turns.collected[number], self._ports.results[number]
            places = None if each.places is None else evaluate(each.places, dims)
            found.append(
                Collection(name, each, at, places, count, self._call.sizes[name], self._cells)
            )
        return found

    def _collected(
        self, collections: Sequence[Collection], types: Sequence[DType], turn: int
    ) -> list[Array]:
        """What the turns decided the length of."""
        for each in collections:
            if each.places is not None and each.places != turn:
                raise other_number(turn, each.places)
        found = []
        growing = (each for each in collections if each.places is None)
        for each, dtype in zip(growing, types, strict=True):
            shape = (turn, *self._call.shapes[each.name])
            size = turn * self._call.sizes[each.name]
            data = self._device.read(each.start, size) if size else np.zeros(0, np.uint8)
            found.append(data.view(dtype.numpy).reshape(shape))
        return found

    def _require_end(self, begun: float, turn: int) -> None:
        if time.monotonic() - begun > self._limit:
            raise LaunchError(
                f"a loop took {turn} turns in {self._limit:g} s, and did not end",
                fix="give it inputs that end it",
            )

    def _number(self, turn: int, target: int) -> None:
        """Give the body the turn's number, without waiting for what was started."""
        place = self._cells.at("numbers", 8 * _NUMBERS)
        if turn % _NUMBERS == 0:
            numbers = np.arange(turn, turn + _NUMBERS, dtype=np.int64)
            self._device.write(place, numbers.view(np.uint8))
        self._cells.copy(place + 8 * (turn % _NUMBERS), target, 8)

    def _cut(
        self,
        each: Sliced,
        inputs: Sequence[int],
        target: int,
        size: int,
        turn: int,
        count: int | None,
    ) -> None:
        """Give the body its part of what is sliced."""
        part = turn if not each.backwards or count is None else count - 1 - turn
        self._fill(each.source, inputs, target, size, part * size)

    def _fill(
        self, source: Source, inputs: Sequence[int], target: int, size: int, at: int = 0
    ) -> None:
        """Copy a part of an input, or of a constant, to a place."""
        if isinstance(source, int):
            self._cells.copy(inputs[source] + at, target, size)
        else:
            self._device.write(target, _flat(source)[at : at + size])

    def _own(self, name: str) -> int:
        return self._cells.at(name, self._call.sizes[name])


def _ports_of(turns: Turns) -> _Ports:
    (body,) = turns.bodies
    first, states = 2 if turns.is_loop else 0, len(turns.states)
    given, made = body.given, body.outputs[1:] if turns.is_loop else body.outputs
    return _Ports(
        given[:first],
        given[first : first + states],
        given[first + states :],
        body.outputs[0] if turns.is_loop else None,
        made[:states],
        made[states:],
    )


def _flat(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
