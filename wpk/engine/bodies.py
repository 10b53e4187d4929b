"""The engines of the bodies of control flow, which live as long as the engine around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from wpk.engine.body_call import BodyEngine
from wpk.engine.control_call import ControlStep, control_step
from wpk.engine.memory_use import MemoryUse
from wpk.execution import Device
from wpk.plan import PlanBundle


class LoadedBody(BodyEngine, Protocol):
    """The engine of a body, as what holds it sees it."""

    @property
    def memory(self) -> MemoryUse:
        """What it holds."""

    def close(self) -> None:
        """Give it back."""


class Bodies:
    """Engines of bodies, and the steps that run them.

    Attributes:
        driven: The steps, by the names of their operators.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.driven: dict[str, ControlStep] = {}
        self._engines: dict[str, LoadedBody] = {}

    def load(
        self, bundle: PlanBundle, device: Device, engine_of: Callable[[PlanBundle], LoadedBody]
    ) -> None:
        """Load the engines of a plan's bodies.

        Args:
            bundle: The plan.
            device: Where they run.
            engine_of: Loads one.

        Raises:
            PlanError, EngineError: As an engine does.
        """
        for digest, body in bundle.bodies.items():
            self._engines[digest] = engine_of(body)
        for step in bundle.plan.steps:
            if step.bodies and step.fallback is not None:
                engines = [self._engines[digest] for digest in step.bodies]
                model = bundle.models[step.fallback.model]
                ready = control_step(step, step.fallback, model, engines, device)
                self.driven[step.operator.name] = ready

    @property
    def held_bytes(self) -> tuple[int, int]:
        """What they hold beside weights: activations with states and parts, and scratch memory."""
        within = [engine.memory for engine in self._engines.values()]
        own = sum(step.cells.bytes for step in self.driven.values())
        arena = own + sum(each.arena_bytes for each in within)
        return arena, sum(each.workspace_bytes for each in within)

    def close(self) -> None:
        """Give everything back."""
        for step in self.driven.values():
            step.cells.close()
        for engine in self._engines.values():
            engine.close()
