"""Time an engine on a GPU: the whole of it as it is deployed, and every operator alone."""

import time
from dataclasses import dataclass

from wpk.device import CudaDevice, Patience, Subject, Timing, time_side_by_side, warm
from wpk.engine.engine import Engine
from wpk.engine.inputs import random_inputs
from wpk.engine.memory_use import MemoryUse
from wpk.plan import PlanBundle
from wpk.trial import Regime

WHOLE = Patience(least=200, most=1000, noise=0.002, seconds=2.0)
"""Enough samples that the 99th percentile is not the slowest of them."""

OPERATORS = Patience(least=11, most=51, noise=0.005, seconds=10.0)

_HOST_SAMPLES = 200


@dataclass(frozen=True)
class EngineTimes:
    """What was measured, in seconds.

    Attributes:
        engine: One inference after another, on the GPU: a sample is one replay of the graph.
        host: The same as the caller's clock sees it: `Engine.run` on arrays that lie on the GPU, and
            waited for.
        operators: Each operator alone by name, those that the host executes or drives by the machine's clock;
            others again and again on operands that stay in L2; the sum is therefore not the engine's time.
        turns: How many turns each loop took on these inputs, by the names of its operator.
        memory: What the engine held on the device.
    """

    engine: Timing
    host: tuple[float, ...]
    operators: dict[str, Timing]
    turns: dict[str, int]
    memory: MemoryUse


def fallback_seconds(engine: Engine, samples: int) -> dict[int, list[float]]:
    """Return times of the steps that the host executes or drives, by their numbers, as the machine's clock sees them.

    Copies out of the device's memory and into it are part of them, and so is the work of all turns of a loop.

    Args:
        engine: That has run at the tuned sizes.
        samples: Executions of each step.
    """
    found: dict[int, list[float]] = {}
    engine.synchronize()
    for number, call in engine.bind().calls.items():
        for _ in range(samples):
            begun = time.perf_counter()
            call.execute()
            engine.device.synchronize()  # turns that nothing ends are not waited for
            found.setdefault(number, []).append(time.perf_counter() - begun)
    return found


def time_engine(bundle: PlanBundle, device: CudaDevice) -> EngineTimes:
    """Time a plan at its tuned sizes on random inputs.

    Raises:
        EngineError: The GPU cannot execute the plan.
        LaunchError: A kernel failed.
    """
    with Engine(bundle, device) as engine:
        inputs = engine.upload(random_inputs(bundle.plan, 0))
        engine.run(inputs)
        binding = engine.bind()
        once = Subject(binding.replay, 1, binding.replay.replay, Regime.WARM)
        whole = time_side_by_side(device, [once], WHOLE)[0]
        host = []
        for _ in range(_HOST_SAMPLES):
            begun = time.perf_counter()
            engine.run(inputs)
            engine.synchronize()
            host.append(time.perf_counter() - begun)
        kernels = [number for number, works in enumerate(binding.steps) if works]
        subjects = [warm(device, binding.steps[number]) for number in kernels]
        timings = dict(zip(kernels, time_side_by_side(device, subjects, OPERATORS), strict=True))
        for number, seconds in fallback_seconds(engine, OPERATORS.least).items():
            timings[number] = Timing(tuple(seconds), Regime.WARM)
        names = [step.operator.name for step in bundle.plan.steps]
        alone = {name: timings[number] for number, name in enumerate(names)}
        memory, turns = engine.memory, engine.host_steps.turns
    return EngineTimes(whole, tuple(host), alone, turns, memory)
