"""A plan on a device at given sizes: addresses, launches, and their replay, made once and kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.engine.control_call import ControlCall, ControlStep
from wpk.engine.fallback_call import FallbackCall, HostCall, SteppedReplay
from wpk.engine.inputs import require_limits
from wpk.engine.recent import Recent
from wpk.execution import Device, Replay, Work
from wpk.plan import (
    Layout,
    MemoryPlan,
    Order,
    Plan,
    StepAddresses,
    arena,
    bind_step,
    check_sizes,
    counter_bytes,
    element_bytes,
    order_of,
    pieces,
    workspace_bytes,
)
from wpk.runtime import RuntimeProcess

_ALIGNMENT = 256
_KEPT = 16
"""How many bindings are kept ready: few batch sizes are in use, and callers reuse few arrays."""

_NOTHING: Mapping[str, int] = {}


@dataclass(frozen=True)
class HostParts:
    """What executes host steps.

    Attributes:
        runtime: Those that no kernel computes.
        driven: Those whose bodies are engines, by the names of the operators.
    """

    runtime: RuntimeProcess
    driven: Mapping[str, ControlStep]


class Binding:
    """Launches for one assignment of the free dimensions and of memory to the model's ports.

    Attributes:
        steps: The launches of each step; none of one that the host executes.
        calls: The others, by their numbers.
        kept: Tensors in the machine's memory, as the last replay left them.
        replay: All of them, captured.
    """

    def __init__(
        self,
        plan: Plan,
        device: Device,
        dims: Mapping[str, int],
        memory: "_Memory",
        layouts: "_Layouts",
        hosts: "HostParts",
        external: Mapping[str, int] = _NOTHING,
    ) -> None:
        """Evaluate every launch at its addresses, and capture."""
        self.kept: dict[str, NDArray[np.generic]] = {}
        self._values = plan.values
        arena_at, workspace, counters = memory.places
        self._starts = {name: arena_at + at for name, at in layouts.arena.offsets.items()}
        for name, address in external.items():
            self._starts[self._values[name].buffer] = address - self._values[name].offset
        self.steps: list[tuple[Work, ...]] = []
        for number, step in enumerate(plan.steps):
            if step.fallback is not None:
                self.steps.append(())
                continue
            addresses = StepAddresses(
                tuple(memory.weights.get(n) or self.address(n) for n in step.inputs),
                element_bytes(plan, step),
                tuple(self.address(name) for name in step.operator.outputs),
                workspace + layouts.workspace.offsets[number],
                counters + layouts.counters.offsets[number],
            )
            self.steps.append(bind_step(step, addresses, dims))
        patience = max((dims[name] / tuned for name, tuned in plan.free.items()), default=1.0)
        self.calls: dict[int, HostCall] = {}
        for number, step in enumerate(plan.steps):
            if step.bodies:
                self.calls[number] = ControlCall(
                    hosts.driven[step.operator.name], self.address, dims, self.kept
                )
            elif step.fallback is not None:
                self.calls[number] = FallbackCall(
                    step,
                    step.fallback,
                    self.address,
                    dims,
                    hosts.runtime,
                    device,
                    self.kept,
                    patience,
                )
        self.replay = self._captured(device, memory.order)

    def _captured(self, device: Device, order: Order) -> Replay:
        """Everything as one graph, or as graphs around what the host executes."""
        if not self.calls:
            return device.capture(*_in_order(self.steps, order))
        parts: list[Replay | HostCall] = []
        begin = 0
        for number in (*self.calls, len(self.steps)):
            works, predecessors = _in_order(self.steps, order, range(begin, number))
            if works:
                parts.append(device.capture(works, predecessors))
            parts += [self.calls[number]] if number in self.calls else []
            begin = number + 1
        return SteppedReplay(parts, device)

    def address(self, name: str) -> int:
        """Return the address of a value."""
        value = self._values[name]
        return self._starts[value.buffer] + value.offset


def _in_order(
    steps: Sequence[Sequence[Work]], order: Order, some: range | None = None
) -> tuple[list[Work], list[tuple[int, ...]]]:
    """Return all work of the steps, or of some, with the pieces of work after which each piece begins."""
    works: list[Work] = []
    predecessors: list[tuple[int, ...]] = []
    ends: dict[int, int] = {}
    for number in range(len(steps)) if some is None else some:
        before = tuple(ends[other] for other in order.predecessors[number] if other in ends)
        for work in steps[number]:
            predecessors.append(before)
            before = (len(works),)
            works.append(work)
        ends[number] = len(works) - 1
    return works, predecessors


BindingKey = tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]
"""Sizes, and addresses of memory that is not the engine's."""


def binding_key(dims: Mapping[str, int], external: Mapping[str, int]) -> BindingKey:
    """Return the key under which a binding is kept."""
    return tuple(sorted(dims.items())), tuple(external.items())


class Bindings:
    """The bindings of a plan. All share one arena, which grows to the largest size that is asked for.

    The bindings that were used longest ago are forgotten.

    Attributes:
        newest: The binding that was used last, if it is still kept.
    """

    def __init__(
        self,
        plan: Plan,
        device: Device,
        weights: Mapping[str, int],
        settle: Callable[[], None],
        hosts: "HostParts",
    ) -> None:
        """Begin with none of a plan whose kernels are loaded, and whose weights have these addresses.

        ``settle`` waits for what was started, before something that it needs is given up; ``hosts``
        executes what neither kernels nor libraries do.
        """
        self._plan, self._device, self._settle, self._hosts = plan, device, settle, hosts
        self._memory = _Memory(plan, device, weights)
        self._bindings: Recent[BindingKey, Binding] = Recent(_KEPT)
        self.newest: Binding | None = None

    def at(self, dims: Mapping[str, int], external: Mapping[str, int] = _NOTHING) -> Binding:
        """Return the binding for an assignment of the free dimensions.

        Args:
            dims: The assignment.
            external: Addresses of inputs and outputs that do not lie in the arena; each is alone in
                its buffer.

        Raises:
            PlanError: The plan's kernels cannot address memory of this size.
        """
        key = binding_key(dims, external)
        binding = self.kept(key)
        if binding is None:
            binding = self.newest = self._make(dims, external)
            self._bindings.put(key, binding)
        return binding

    def kept(self, key: BindingKey) -> Binding | None:
        """The binding that has this key, if it is still there."""
        binding = self._bindings.get(key)
        if binding is not None:
            self.newest = binding
        return binding

    def _make(self, dims: Mapping[str, int], external: Mapping[str, int]) -> Binding:
        require_limits(self._plan, dims)
        check_sizes(self._plan, dict(dims))
        layouts = self._memory.layouts(dims)
        if not self._memory.holds(layouts):
            self._settle()
            self._forget()
            self._memory.grow(layouts)
        if self._bindings.is_full:
            self._settle()
            self._bindings.make_room()
        return Binding(self._plan, self._device, dims, self._memory, layouts, self._hosts, external)

    @property
    def held_bytes(self) -> tuple[int, int]:
        """Bytes that the arena and the workspace with its counters take on the device now."""
        return self._memory.held_bytes

    def close(self) -> None:
        """Give the arena back."""
        self._forget()
        self._memory.free()

    def _forget(self) -> None:
        self.newest = None
        self._bindings.clear()


@dataclass(frozen=True)
class _Layouts:
    """Where everything lies for one assignment of the free dimensions."""

    arena: MemoryPlan
    workspace: Layout[int]
    counters: Layout[int]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of each."""
        return self.arena.bytes, self.workspace.bytes, self.counters.bytes


class _Memory:
    """Where the arena, the workspace and the counters lie on the device, and where the weights do."""

    def __init__(self, plan: Plan, device: Device, weights: Mapping[str, int]) -> None:
        self.weights = weights
        self.places: list[int] = []
        self.order = order_of(plan)
        self._plan, self._device = plan, device
        self._sizes: tuple[int, ...] = (0, 0, 0)

    def layouts(self, dims: Mapping[str, int]) -> _Layouts:
        return _Layouts(
            arena(self._plan, self.order, dims),
            pieces(self._plan, self.order, dims, workspace_bytes),
            pieces(self._plan, self.order, dims, counter_bytes),
        )

    def holds(self, layouts: _Layouts) -> bool:
        pairs = zip(layouts.sizes, self._sizes, strict=True)
        return bool(self.places) and all(n <= s for n, s in pairs)

    def grow(self, layouts: _Layouts) -> None:
        pairs = zip(layouts.sizes, self._sizes, strict=True)
        sizes = tuple(max(*pair, _ALIGNMENT) for pair in pairs)
        self.free()
        for size in sizes:
            self.places.append(self._device.allocate(size))
        self._device.write(self.places[-1], np.zeros(sizes[-1], np.uint8))
        self._sizes = sizes

    @property
    def held_bytes(self) -> tuple[int, int]:
        arena_bytes, scratch, counters = self._sizes
        return arena_bytes, scratch + counters

    def free(self) -> None:
        while self.places:
            self._device.free(self.places.pop())
        self._sizes = (0, 0, 0)
