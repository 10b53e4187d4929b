"""Several plans of one model as one engine: each run goes to the plan that was written for its sizes."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, Self

from wpk.emulator import EmulatorProcess
from wpk.engine.engine import Engine
from wpk.engine.inputs import bind_shape, require_mapping, require_names
from wpk.engine.loading import opened_for
from wpk.engine.weight_memory import WeightMemory
from wpk.errors import EngineError
from wpk.plan import Plan, PlanBundle, read_plan

Sizes = Mapping[str, tuple[int, ...]]
"""Shapes of inputs by name."""


def load_profiles(
    paths: Sequence[str | os.PathLike[str]], device: str = "auto", *, trust: bool = False
) -> "Profiles":
    """Read several plans of one model and make them ready on one device.

    Args:
        paths: The plan files, e.g. one for each length of a sequence.
        device: As for `wpk.load`.
        trust: See there.

    Raises:
        PlanError, EngineError, VerificationError: As `wpk.load`; the plans are of different models, or
            there is none.
    """
    if not paths:
        raise EngineError("there is no plan among the profiles", fix="give at least one plan file")
    names = [Path(path) for path in paths]
    bundles = [read_plan(path) for path in names]
    for path, bundle in zip(names, bundles, strict=True):
        _require_same(names[0], bundles[0].plan, path, bundle.plan)
    opened = opened_for(bundles, device, trust=trust)
    try:
        return Profiles([(str(n), b) for n, b in zip(names, bundles, strict=True)], opened)
    except BaseException:
        if isinstance(opened, EmulatorProcess):
            opened.close()
        raise


class Profiles:
    """Plans of one model on one device, which share the weights that they have in common.

    A run goes to the first plan that takes its sizes, those with the fewest free dimensions first. Each
    plan keeps what it has captured, so that going from one to another captures nothing again.

    Attributes:
        engines: By the plans' names, in the order in which they are asked.
    """

    def __init__(self, plans: Sequence[tuple[str, PlanBundle]], device: Any) -> None:
        """Load all plans.

        Args:
            plans: By name.
            device: Where to execute them; it is closed with this if it is a process.

        Raises:
            EngineError: One was compiled for another GPU, or there is not enough memory.
        """
        self.engines: dict[str, Engine] = {}
        self._device, self._lock = device, RLock()
        self._weights = WeightMemory(device)
        try:
            for name, bundle in sorted(plans, key=lambda each: len(each[1].plan.free)):
                self.engines[name] = Engine(bundle, device, weights=self._weights)
        except BaseException:
            self._close_engines()
            raise

    def engine_for(self, inputs: Mapping[str, Any]) -> Engine:
        """Return the engine of the plan that takes inputs of these sizes.

        Raises:
            EngineError: None does, or the inputs have other names.
        """
        require_mapping("inputs", inputs)
        first = next(iter(self.engines.values()))
        require_names("inputs", first.plan.inputs, inputs)
        sizes = {name: _shape(name, array) for name, array in inputs.items()}
        for engine in self.engines.values():
            if _takes(engine.plan, sizes):
                return engine
        given = ", ".join(f"'{name}' {list(shape)}" for name, shape in sizes.items())
        served = "; ".join(f"{name}: {_served(e.plan)}" for name, e in self.engines.items())
        raise EngineError(
            f"no profile takes {given}; there are {served}",
            fix="give arrays of these sizes, or write a plan for more: wpk optimize --shapes",
        )

    def run(
        self,
        inputs: Mapping[str, Any],
        *,
        outputs: Mapping[str, Any] | None = None,
        stream: object = None,
    ) -> dict[str, Any]:
        """Execute the plan that takes these sizes once; see `Engine.run`.

        Raises:
            EngineError: No plan takes them, or as `Engine.run`.
            LaunchError: A kernel failed.
        """
        with self._lock:
            engine = self.engine_for(inputs)
            if outputs is None and stream is None:
                return engine.run(inputs)
            return engine.run(inputs, outputs=outputs, stream=stream)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights on the device, those that plans share counted once."""
        return self._weights.bytes

    def synchronize(self) -> None:
        """Wait until all runs have ended.

        Raises:
            LaunchError: One failed.
        """
        for engine in self.engines.values():
            engine.synchronize()

    def close(self) -> None:
        """Give all device memory back, once runs have ended."""
        with self._lock:
            self._close_engines()
            if isinstance(self._device, EmulatorProcess):
                self._device.close()

    def __enter__(self) -> Self:
        """Return the profiles themselves."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def _close_engines(self) -> None:
        for engine in self.engines.values():
            engine.close()


def _shape(name: str, array: object) -> tuple[int, ...]:
    shape = getattr(array, "shape", None)
    if shape is None:
        raise EngineError(
            f"input '{name}' is a {type(array).__name__}, which has no shape",
            fix="give arrays, e.g. of NumPy, PyTorch or CuPy",
        )
    return tuple(int(size) for size in shape)


def _takes(plan: Plan, sizes: Sizes) -> bool:
    """Tell whether inputs of these shapes fit a plan, within its limits."""
    dims: dict[str, int] = {}
    try:
        for port in plan.inputs:
            bind_shape(port, sizes[port.name], dims)
    except EngineError:
        return False
    limits = plan.limits.items()
    return all(smallest <= dims[name] <= largest for name, (smallest, largest) in limits)


def _served(plan: Plan) -> str:
    """What a plan takes, in words."""
    ports = (f"'{p.name}' [{', '.join(map(str, p.shape))}]" for p in plan.inputs)
    limits = (f"{name} {least} to {most}" for name, (least, most) in plan.limits.items())
    return ", ".join((*ports, *limits))


def _require_same(first: Path, plan: Plan, path: Path, other: Plan) -> None:
    """Check that two plans are of one model.

    Raises:
        EngineError: They are not.
    """
    same_model = plan.provenance.model_digest == other.provenance.model_digest
    if not same_model or _interface(plan) != _interface(other):
        raise EngineError(
            f"{path} is a plan of {other.provenance.model}, {first} one of another model: "
            f"{plan.provenance.model}",
            fix="give plans of one model file, written with other --shapes",
        )


def _interface(plan: Plan) -> object:
    """What goes in and out; an output that one plan gives a shape may have it from the run in another."""
    outputs = {port.name: port.dtype for port in plan.outputs}
    outputs |= {output.name: output.dtype for output in plan.kept_outputs}
    return [(port.name, port.dtype, len(port.shape)) for port in plan.inputs], outputs
