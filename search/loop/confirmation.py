"""Whole engines confirm what was chosen on single operators; substitutions that do not pay are undone."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wpk.assembly import EvidenceBook, PackedConstants, Setting, assemble
from wpk.backends import GpuProcess
from wpk.candidate import GENERATED
from wpk.device import Patience, noise_band, quantile
from wpk.engine import Engine, WeightMemory, fallback_seconds, random_inputs
from wpk.lowering.program import Program
from wpk.plan import EngineMeasurement, EngineVariant, PlanBundle, library_images
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.loop.choices import Choices, best_library
from wpk.search.loop.evidence import evidence_of
from wpk.trial import Regime

ROUNDS = 3
"""Turns that the engines take."""

FALLBACK_SAMPLES = 21
"""Executions of a step of ONNX Runtime; their median counts."""

HOPELESS = 1.05
"""Times of the best, beyond which an engine takes no further turn: placing them anew moves a time by
1 to 2 %."""

_STAGE = "comparing engines"
_PATIENCE = Patience(least=5, most=21, noise=0.005, seconds=0.5)
_LIMIT_SECONDS = 60.0


OnRivals = Callable[[Mapping[str, PlanBundle]], None]
"""Told of whole engines by name; their plans hold no evidence."""


def confirmed(
    program: Program,
    static: Choices,
    tuned: Choices,
    setting: Setting,
    constants: PackedConstants,
    gpu: GpuProcess,
    tell: Progress,
    on_rivals: OnRivals | None = None,
) -> tuple[PlanBundle, EvidenceBook]:
    """Return the fastest whole engine, and why it is what it is: it says what it was compared with.

    What is compared is the work of the GPU: steps that ONNX Runtime executes are the same in all engines, and
    are timed by themselves.

    Engines take turns, one inference after another: what the models chose (``models``), generated
    kernels only (``generated``), a library wherever one can (``library``), of each operator the
    fastest alone (``mixed``), and that with the weakest substitutions undone, a quarter at a time
    (``undone 1/4``, …): a kernel that is faster alone need not be so among its neighbours.

    Args:
        program: The model.
        static: What the models chose.
        tuned: The outcome of tuning.
        setting: What plans are written for.
        constants: The program's, as far as plans of it have packed them.
        gpu: Executes all of them.
        tell: Told of the progress.
        on_rivals: Told of the engines that were compared, by name.

    Raises:
        LaunchError: A kernel failed.
        EngineError: There is not enough memory for all.
    """
    tell(_STAGE, 0, 1)
    undone = _undone(tuned)
    choices = _variants(static, tuned, undone)
    plans = {
        n: assemble(program, c.implementations, c.kernels, setting, constants)
        for n, c in choices.items()
    }
    bench = _Bench(gpu, random_inputs(next(iter(plans.values())).plan, 0))
    samples = _side_by_side(bench, plans)
    if on_rivals is not None:
        on_rivals(plans)
    measurement = _measurement(program, plans, samples, undone)
    best = measurement.chosen
    times = _step_seconds(bench, plans[best], quantile(samples[best], 0.5))
    handed = _fallback_seconds(bench, plans[best])
    tell(_STAGE, 1, 1)
    evidence = evidence_of(plans[best].plan, choices[best], times, handed)
    return plans[best], EvidenceBook(evidence, measurement=measurement)


def _variants(
    static: Choices, tuned: Choices, undone: Mapping[str, Sequence[Problem]]
) -> dict[str, Choices]:
    """What is compared, by name; what would execute the same candidates as one before it is left out."""
    libraries = tuned.libraries
    variants = {
        "models": replace(static, results=tuned.results, regime=tuned.regime),
        "generated": tuned.by(dict.fromkeys(tuned.families, GENERATED)),
        "library": tuned.by(libraries),
        "mixed": tuned,
        **{n: tuned.by({p: libraries[p] for p in problems}) for n, problems in undone.items()},
    }
    distinct: dict[str, Choices] = {}
    for name, choices in variants.items():
        if all(each.candidates != choices.candidates for each in distinct.values()):
            distinct[name] = choices
    return distinct


def _undone(tuned: Choices) -> dict[str, list[Problem]]:
    """By name, the problems of which a library takes its place back: those where least was gained."""

    def gain(problem: Problem) -> float:
        result = tuned.results[problem]
        generated, library = result.best_of(GENERATED), best_library(result)
        if generated is None or library is None:
            raise ValueError("a substitution has both")
        return library.cost / generated.cost

    weakest = sorted((p for p in tuned.libraries if tuned.families[p] == GENERATED), key=gain)
    return {f"undone {part}/4": weakest[: len(weakest) * part // 4] for part in (1, 2, 3)}


@dataclass(frozen=True)
class _Bench:
    """A GPU, and what all engines are given on it."""

    gpu: GpuProcess
    inputs: Mapping[str, NDArray[np.generic]]

    def ready(self, bundle: PlanBundle, weights: WeightMemory | None = None) -> Engine:
        """An engine that has run once: its memory holds numbers as they come."""
        engine = Engine(bundle, self.gpu, weights=weights)
        engine.run(self.inputs)
        return engine


def _side_by_side(bench: _Bench, plans: Mapping[str, PlanBundle]) -> dict[str, tuple[float, ...]]:
    """Samples of every engine. Each round places them anew: where memory lies moves times, too.

    Those far behind the best have no part in the next one.
    """
    gpu = bench.gpu
    gpu.limit_seconds = _LIMIT_SECONDS
    samples: dict[str, tuple[float, ...]] = dict.fromkeys(plans, ())
    names = list(plans)
    for turn in range(ROUNDS):
        order = names[turn % len(names) :] + names[: turn % len(names)]
        weights = WeightMemory(gpu)  # once for all: a large model's fit into a GPU only so often
        with ExitStack() as stack:
            engines = {n: stack.enter_context(bench.ready(plans[n], weights)) for n in order}
            for name, engine in engines.items():
                works = [work for step in engine.bind().steps for work in step]
                samples[name] += gpu.measure(works, (), Regime.WARM, _PATIENCE).seconds
        medians = {name: quantile(samples[name], 0.5) for name in names}
        names = [name for name in names if medians[name] <= HOPELESS * min(medians.values())]
    return samples


def _measurement(
    program: Program,
    plans: Mapping[str, PlanBundle],
    samples: Mapping[str, Sequence[float]],
    undone: Mapping[str, Sequence[Problem]],
) -> EngineMeasurement:
    best = min(samples, key=lambda name: quantile(samples[name], 0.5))
    problems = undone.get(best, ())
    names = tuple(o.name for each in problems for o in program.operators if o.problem == each)
    variants = tuple(_variant(name, bundle, samples[name]) for name, bundle in plans.items())
    return EngineMeasurement(variants, best, names)


def _variant(name: str, bundle: PlanBundle, seconds: Sequence[float]) -> EngineVariant:
    low, high = noise_band(seconds)
    library = len(list(library_images(bundle.plan)))
    generated = sum(bool(step.launches) for step in bundle.plan.steps)
    return EngineVariant(name, quantile(seconds, 0.5), low, high, library, generated)


def _step_seconds(bench: _Bench, bundle: PlanBundle, whole: float) -> list[float]:
    """Each step's time in the engine; the marks between steps are taken out evenly."""
    with bench.ready(bundle) as engine:
        times = bench.gpu.step_seconds(engine.bind().steps)
    mark = max(0.0, sum(times) - whole) / len(times)
    return [max(0.0, seconds - mark) for seconds in times]


def _fallback_seconds(bench: _Bench, bundle: PlanBundle) -> dict[int, list[float]]:
    """Times of the steps that ONNX Runtime executes, by their numbers: copies, waiting and its work."""
    if not bundle.models:
        return {}
    with bench.ready(bundle) as engine:
        return fallback_seconds(engine, FALLBACK_SAMPLES)
