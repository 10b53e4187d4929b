"""Confirm on whole engines what was chosen on single operators; substitutions that do not pay go."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

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

    What the models chose (``models``), generated kernels only (``generated``), the library wherever
    it can (``library``), and of each operator the fastest alone (``mixed``) are timed among their
    neighbours, step by step. Where an operator's substitution does not pay there, it is undone
    (``revised``). Then all engines take turns, one inference after another, and the fastest is kept.

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

    def add(name: str, picks: frozenset[Problem]) -> str:
        return _add(plans, name, assemble(program, replace(found, picks=picks), setting))

    with open_gpu() as gpu:
        names = [add("generated", frozenset()), add("library", frozenset(found.library))]
        add("mixed", found.picks)
        among = {name: _step_times(gpu, bundle) for name, bundle in plans.items()}
        generated, library = (_sums(plans[name], among[name]) for name in names)
        revised = frozenset(p for p in found.library if library[p] < generated[p])
        name = add("revised", revised)
        among[name] = among.get(name) or _step_times(gpu, plans[name])
        samples = _side_by_side(gpu, plans)
    tell(stage, 1, 1)
    best = min(samples, key=lambda name: quantile(samples[name], 0.5))
    variants = tuple(_variant(name, plans[name], samples[name]) for name in plans)
    undone = _undone(program, found, revised) if best == "revised" else ()
    chosen = _with_step_times(plans[best], among[best], quantile(samples[best], 0.5))
    measurement = EngineMeasurement(variants, best, undone)
    return replace(chosen, plan=replace(chosen.plan, measurement=measurement))


def _add(plans: dict[str, PlanBundle], name: str, bundle: PlanBundle) -> str:
    """Take a plan up, unless one is there that does the same; the name that it has."""
    choices = [step.choice for step in bundle.plan.steps]
    for known, each in plans.items():
        if choices == [step.choice for step in each.plan.steps]:
            return known
    plans[name] = bundle
    return name


def _sums(bundle: PlanBundle, times: Sequence[float]) -> dict[Problem, float]:
    """Seconds that all operators of a problem take together."""
    sums: dict[Problem, float] = {}
    for step, seconds in zip(bundle.plan.steps, times, strict=True):
        sums[step.operator.problem] = sums.get(step.operator.problem, 0.0) + seconds
    return sums


def _undone(program: Program, found: Found, revised: frozenset[Problem]) -> tuple[str, ...]:
    """Operators that another family computes than is the fastest alone; the weakest wins first."""
    changed = sorted(revised ^ found.picks, key=lambda problem: _advantage(found, problem))
    return tuple(
        operator.name
        for problem in changed
        for operator in program.operators
        if operator.problem == problem
    )


def _advantage(found: Found, problem: Problem) -> float:
    """How many times as long the slower family takes alone."""
    tuned = found.tuned[problem]
    bests = (tuned.best_of(library=False), tuned.best_of(library=True))
    costs = [each.trial.cost for each in bests if each is not None]
    return max(costs) / min(costs)


def _side_by_side(
    gpu: TrialProcess, plans: Mapping[str, PlanBundle]
) -> dict[str, tuple[float, ...]]:
    """Samples of every engine. Each round places them anew: where memory lies moves times, too."""
    samples: dict[str, tuple[float, ...]] = dict.fromkeys(plans, ())
    names = list(plans)
    for turn in range(ROUNDS):
        order = names[turn % len(names) :] + names[: turn % len(names)]
        with ExitStack() as stack:
            engines = {n: stack.enter_context(_ready(plans[n], gpu)) for n in order}
            for name, engine in engines.items():
                works = [work for step in engine.bind().steps for work in step]
                samples[name] += gpu.measure(works, (), Regime.WARM, _PATIENCE).seconds
    return samples


def _ready(bundle: PlanBundle, gpu: TrialProcess) -> Engine:
    """An engine that has run once: its memory holds numbers as they come."""
    engine = Engine(bundle, gpu)
    engine.run(random_inputs(engine.plan, 0))
    return engine


def _step_times(gpu: TrialProcess, bundle: PlanBundle) -> tuple[float, ...]:
    """Seconds of each step among its neighbours, and of the mark after it."""
    with _ready(bundle, gpu) as engine:
        return gpu.step_seconds(engine.bind().steps)


def _variant(name: str, bundle: PlanBundle, seconds: Sequence[float]) -> EngineVariant:
    low, high = noise_band(seconds)
    library = sum(isinstance(step.choice, LibraryChoice) for step in bundle.plan.steps)
    generated = len(bundle.plan.steps) - library
    return EngineVariant(name, quantile(seconds, 0.5), low, high, library, generated)


def _with_step_times(bundle: PlanBundle, times: Sequence[float], whole: float) -> PlanBundle:
    """The plan with each step's time in the engine; the marks between steps are taken out evenly."""
    mark = max(0.0, sum(times) - whole) / len(times)
    steps = []
    for step, seconds in zip(bundle.plan.steps, times, strict=True):
        measured = step.evidence.measurement
        if measured is not None:
            measured = replace(measured, in_engine_seconds=max(0.0, seconds - mark))
        steps.append(replace(step, evidence=replace(step.evidence, measurement=measured)))
    return replace(bundle, plan=replace(bundle.plan, steps=tuple(steps)))
