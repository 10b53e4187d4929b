"""Confirm on whole engines what was chosen on single operators; substitutions that do not pay go."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from wpk.device.timing import Patience, noise_band, quantile
from wpk.engine.assembly import Setting, assemble
from wpk.engine.engine import Engine
from wpk.engine.inputs import random_inputs
from wpk.engine.measured_evidence import with_measurement
from wpk.engine.measurement import EngineMeasurement, EngineVariant
from wpk.engine.plan import LibraryChoice, PlanBundle
from wpk.engine.trials import OpenGpu
from wpk.libraries.process import TrialProcess
from wpk.lowering.program import Program
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.model_search import Found
from wpk.trial import Regime

ROUNDS = 3
"""Turns that the engines take."""

UNDOING_SECONDS = 15.0
"""Time after which no further substitution is put to the test."""

_PATIENCE = Patience(least=5, most=21, noise=0.005, seconds=0.5)
_LIMIT_SECONDS = 60.0


def _open() -> TrialProcess:
    return TrialProcess(limit_seconds=_LIMIT_SECONDS)


def confirmed(
    program: Program,
    static: PlanBundle,
    found: Found,
    setting: Setting,
    tell: Progress,
    open_gpu: OpenGpu = _open,
) -> PlanBundle:
    """The fastest whole engine; it says what it was compared with.

    All engines lie in the memory of one process and take turns, one inference after another: what
    the models chose (``models``), generated kernels only (``generated``), the library wherever it
    can (``library``), and of each operator the fastest (``mixed``). Then substitutions are undone
    one by one, those first that gained least on their own, where the engine gets faster by it.

    Args:
        program: The model.
        static: The plan that the models chose.
        found: The outcome of tuning.
        setting: What plans are written for.
        tell: Told of the progress.
        open_gpu: Starts a process that executes all of them.

    Raises:
        LaunchError: A kernel failed.
        EngineError: There is not enough memory for all.
    """
    stage = "comparing engines"
    tell(stage, 0, 1)
    steps = tuple(with_measurement(step, found) for step in static.plan.steps)
    plans = {"models": replace(static, plan=replace(static.plan, steps=steps))}
    for name, picks in _picks(found):
        bundle = assemble(program, replace(found, picks=picks), setting)
        if not any(_same(bundle, other) for other in plans.values()):
            plans[name] = bundle
    with open_gpu() as gpu:
        times = _side_by_side(gpu, plans)
        best = min(times, key=lambda name: times[name].median)
        champion = _Champion(best, plans[best], times[best])
        if best in ("mixed", "library", "generated"):
            champion = _undo(program, found, setting, gpu, champion)
        variants = [time.variant(name, plans[name]) for name, time in times.items()]
        if champion.undone:
            variants.append(champion.times.variant(champion.name, champion.bundle))
        bundle = _with_step_times(gpu, champion.bundle, champion.times.median)
    tell(stage, 1, 1)
    measurement = EngineMeasurement(tuple(variants), champion.name, champion.undone)
    return replace(bundle, plan=replace(bundle.plan, measurement=measurement))


@dataclass(frozen=True)
class _Times:
    """Samples of one engine, in seconds of one inference."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return quantile(self.seconds, 0.5)

    def variant(self, name: str, bundle: PlanBundle) -> EngineVariant:
        low, high = noise_band(self.seconds)
        library = sum(isinstance(step.choice, LibraryChoice) for step in bundle.plan.steps)
        generated = len(bundle.plan.steps) - library
        return EngineVariant(name, self.median, low, high, library, generated)


@dataclass(frozen=True)
class _Champion:
    """The fastest engine so far, and which operators' substitutions were undone for it."""

    name: str
    bundle: PlanBundle
    times: _Times
    undone: tuple[str, ...] = ()


def _picks(found: Found) -> Iterator[tuple[str, frozenset[Problem]]]:
    yield "generated", frozenset()
    if found.library:
        yield "library", frozenset(found.library)
    yield "mixed", found.picks


def _same(first: PlanBundle, second: PlanBundle) -> bool:
    pairs = zip(first.plan.steps, second.plan.steps, strict=True)
    return all(mine.choice == other.choice for mine, other in pairs)


def _side_by_side(gpu: TrialProcess, plans: dict[str, PlanBundle]) -> dict[str, _Times]:
    samples: dict[str, list[float]] = {name: [] for name in plans}
    with ExitStack() as stack:
        engines = {n: stack.enter_context(Engine(plan, gpu)) for n, plan in plans.items()}
        for engine in engines.values():
            engine.run(random_inputs(engine.plan, 0))
        for _ in range(ROUNDS):
            for name, engine in engines.items():
                works = [work for step in engine.bind().steps for work in step]
                samples[name] += gpu.measure(works, (), Regime.WARM, _PATIENCE).seconds
    return {name: _Times(tuple(seconds)) for name, seconds in samples.items()}


def _undo(
    program: Program, found: Found, setting: Setting, gpu: TrialProcess, champion: _Champion
) -> _Champion:
    """Try the other family for one problem after another; keep what is faster beyond noise."""
    end = time.monotonic() + UNDOING_SECONDS
    picks = {
        step.operator.problem
        for step in champion.bundle.plan.steps
        if isinstance(step.choice, LibraryChoice)
    }
    for problem in _weakest_first(found):
        if time.monotonic() > end:
            break
        other = frozenset(picks ^ {problem})
        bundle = assemble(program, replace(found, picks=other), setting)
        times = _side_by_side(gpu, {"now": champion.bundle, "then": bundle})
        (low, _), (_, high) = noise_band(times["now"].seconds), noise_band(times["then"].seconds)
        if high < low:
            names = [o.name for o in program.operators if o.problem == problem]
            undone = (*champion.undone, *names)
            champion, picks = _Champion("revised", bundle, times["then"], undone), set(other)
    return champion


def _weakest_first(found: Found) -> list[Problem]:
    """Problems that both families compute, those first where it matters least which of them does."""
    advantages: dict[Problem, float] = {}
    for problem in found.library:
        tuned = found.tuned[problem]
        generated, library = tuned.best_of(library=False), tuned.best_of(library=True)
        if generated is not None and library is not None:
            times = sorted((generated.trial.cost, library.trial.cost))
            advantages[problem] = times[1] / times[0]
    return sorted(advantages, key=lambda problem: advantages[problem])


def _with_step_times(gpu: TrialProcess, bundle: PlanBundle, whole: float) -> PlanBundle:
    """The plan with each step's time in the engine; the marks between steps are taken out evenly."""
    with Engine(bundle, gpu) as engine:
        engine.run(random_inputs(engine.plan, 0))
        times = gpu.step_seconds(engine.bind().steps)
    mark = max(0.0, sum(times) - whole) / len(times)
    steps = []
    for step, seconds in zip(bundle.plan.steps, times, strict=True):
        measured = step.evidence.measurement
        if measured is not None:
            measured = replace(measured, in_engine_seconds=max(0.0, seconds - mark))
        steps.append(replace(step, evidence=replace(step.evidence, measurement=measured)))
    return replace(bundle, plan=replace(bundle.plan, steps=tuple(steps)))
