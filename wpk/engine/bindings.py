"""A plan on a device at given sizes: addresses, launches, and their replay, made once and kept."""

from collections.abc import Mapping

from wpk.engine.binding import StepAddresses, arena, bind_step, element_bytes, workspace_bytes
from wpk.engine.plan import Plan
from wpk.engine.plan_checks import check_sizes
from wpk.execution import BoundLaunch, Device, Replay
from wpk.lowering.memory import MemoryPlan

_ALIGNMENT = 256
_KEPT = 8
"""Assignments of the free dimensions that are kept ready; batch sizes in use are few."""


class Binding:
    """Launches for one assignment of the free dimensions.

    Attributes:
        steps: The launches of each step.
        replay: All of them, captured.
    """

    def __init__(
        self, plan: Plan, device: Device, dims: Mapping[str, int], where: "_Memory"
    ) -> None:
        """Evaluate every launch at its addresses, and capture."""
        self._values, self._memory, self._arena = plan.values, where.plan(dims), where.arena
        self.steps: list[tuple[BoundLaunch, ...]] = []
        for step in plan.steps:
            addresses = StepAddresses(
                tuple(where.weights.get(n) or self.address(n) for n in step.inputs),
                element_bytes(plan, step),
                tuple(self.address(name) for name in step.operator.outputs),
                where.workspace,
            )
            self.steps.append(bind_step(step, addresses, dims))
        self.replay: Replay = device.capture([each for step in self.steps for each in step])

    def address(self, name: str) -> int:
        """Where a value lies."""
        value = self._values[name]
        return self._arena + self._memory.offsets[value.buffer] + value.offset


class Bindings:
    """The bindings of a plan. All share one arena, which grows to the largest that is asked for."""

    def __init__(self, plan: Plan, device: Device, weights: Mapping[str, int]) -> None:
        """Begin with none.

        Args:
            plan: What to bind; its kernels are loaded.
            device: Where.
            weights: Addresses of the weights by name.
        """
        self._plan, self._device = plan, device
        self._memory = _Memory(plan, device, weights)
        self._bound: dict[tuple[tuple[str, int], ...], Binding] = {}

    def at(self, dims: Mapping[str, int]) -> Binding:
        """The binding for an assignment of the free dimensions.

        Raises:
            PlanError: The plan's kernels cannot address memory of this size.
        """
        key = tuple(sorted(dims.items()))
        if key not in self._bound:
            check_sizes(self._plan, dict(dims))
            if not self._memory.holds(dims):
                self._bound.clear()
                self._memory.grow(dims)
            while len(self._bound) >= _KEPT:
                del self._bound[next(iter(self._bound))]
            self._bound[key] = Binding(self._plan, self._device, dims, self._memory)
        return self._bound[key]

    def close(self) -> None:
        """Give the arena back."""
        self._bound.clear()
        self._memory.free()


class _Memory:
    """The arena and the workspace on the device, and where the weights lie."""

    def __init__(self, plan: Plan, device: Device, weights: Mapping[str, int]) -> None:
        self.weights = weights
        self.arena = self.workspace = 0
        self._plan, self._device = plan, device
        self._sizes = (0, 0)

    def plan(self, dims: Mapping[str, int]) -> MemoryPlan:
        return arena(self._plan, dims)

    def needed(self, dims: Mapping[str, int]) -> tuple[int, int]:
        """Bytes of the arena and of the workspace."""
        scratch = max((workspace_bytes(step, dims) for step in self._plan.steps), default=0)
        return self.plan(dims).arena_bytes, scratch

    def holds(self, dims: Mapping[str, int]) -> bool:
        pairs = zip(self.needed(dims), self._sizes, strict=True)
        return bool(self.arena and self.workspace) and all(n <= s for n, s in pairs)

    def grow(self, dims: Mapping[str, int]) -> None:
        self.free()
        (arena_bytes, scratch), (most, most_scratch) = self.needed(dims), self._sizes
        self._sizes = (max(arena_bytes, most), max(scratch, most_scratch))
        self.arena = self._device.allocate(max(self._sizes[0], _ALIGNMENT))
        self.workspace = self._device.allocate(max(self._sizes[1], _ALIGNMENT))

    def free(self) -> None:
        for address in (self.arena, self.workspace):
            if address:
                self._device.free(address)
        self.arena = self.workspace = 0
