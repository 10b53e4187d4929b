"""Confirm on the whole engine what was chosen on single operators."""

from collections.abc import Sequence
from dataclasses import replace

from wpk.device.process import GpuProcess
from wpk.device.timing import Patience, noise_band, quantile
from wpk.engine.engine import Engine
from wpk.engine.inputs import random_inputs
from wpk.engine.measurement import EngineMeasurement, EngineVariant
from wpk.engine.plan import PlanBundle
from wpk.engine.trials import OpenGpu
from wpk.trial import Regime

ROUNDS = 3
"""Turns that both engines take."""

_PATIENCE = Patience(least=5, most=21, noise=0.005, seconds=0.5)

_LIMIT_SECONDS = 60.0


def _open() -> GpuProcess:
    return GpuProcess(limit_seconds=_LIMIT_SECONDS)


def confirmed(static: PlanBundle, tuned: PlanBundle, open_gpu: OpenGpu = _open) -> PlanBundle:
    """The tuned plan, or the static one where that is faster beyond the noise; it says by how much.

    Both engines lie in the memory of one process and take turns, one inference after another.

    Args:
        static: The plan that the models chose.
        tuned: The plan of the fastest single operators.
        open_gpu: Starts a process that executes both.

    Raises:
        LaunchError: A kernel failed.
        EngineError: There is not enough memory for both.
    """
    samples: tuple[list[float], list[float]] = ([], [])
    with open_gpu() as gpu, Engine(static, gpu) as first, Engine(tuned, gpu) as second:
        for engine in (first, second):
            engine.run(random_inputs(engine.plan, 0))
        for _ in range(ROUNDS):
            for engine, seconds in zip((first, second), samples, strict=True):
                launches = [launch for step in engine.bind().steps for launch in step]
                seconds += gpu.measure(launches, (), Regime.WARM, _PATIENCE).seconds
    variants = (_variant("models", static, samples[0]), _variant("mixed", tuned, samples[1]))
    keep = variants[1].low_seconds <= variants[0].high_seconds
    measurement = EngineMeasurement(variants, variants[keep].name)
    chosen = tuned if keep else static
    return replace(chosen, plan=replace(chosen.plan, measurement=measurement))


def _variant(name: str, bundle: PlanBundle, seconds: Sequence[float]) -> EngineVariant:
    low, high = noise_band(seconds)
    steps = len(bundle.plan.steps)
    return EngineVariant(name, quantile(seconds, 0.5), low, high, 0, steps)
