"""Confirm on whole engines what was chosen on single operators; substitutions that do not pay go."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from wpk.backends import GpuProcess
from wpk.device import Patience, noise_band, quantile
from wpk.engine import Engine, random_inputs
from wpk.lowering.program import Program
from wpk.plans.assembly import Setting, assemble
from wpk.plans.measured_evidence import with_measurement
from wpk.plans.measurement import EngineMeasurement, EngineVariant
from wpk.plans.plan import LibraryChoice, PlanBundle
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.model_search import Found
from wpk.trial import Regime

ROUNDS = 3
"""Turns that the engines take."""

HOPELESS = 1.05
"""Times of the best, beyond which an engine takes no further turn: placing them anew moves a time by
1 to 2 %."""

_PATIENCE = Patience(least=5, most=21, noise=0.005, seconds=0.5)
_LIMIT_SECONDS = 60.0


def confirmed(
    program: Program,
    static: PlanBundle,
    found: Found,
    setting: Setting,
    gpu: GpuProcess,
    tell: Progress,
) -> PlanBundle:
    """The fastest whole engine; it says what it was compared with.

    Engines take turns, one inference after another: what the models chose (``models``), generated
    kernels only (``generated``), the library wherever it can (``library``), of each operator the
    fastest alone (``mixed``), and that with the weakest substitutions undone, a quarter at a time
    (``undone 1/4``, …): a kernel that is faster alone need not be so among its neighbours.

    Args:
        program: The model.
        static: The plan that the models chose.
        found: The outcome of tuning.
        setting: What plans are written for.
        gpu: Executes all of them.
        tell: Told of the progress.

    Raises:
        LaunchError: A kernel failed.
        EngineError: There is not enough memory for all.
    """
    stage = "comparing engines"
    tell(stage, 0, 1)
    steps = tuple(with_measurement(step, found) for step in static.plan.steps)
    plans = {"models": replace(static, plan=replace(static.plan, steps=steps))}
    substituted = _weakest_first(found)
    wanted = {
        "generated": frozenset[Problem](),
        "library": frozenset(found.library),
        "mixed": found.picks,
        **{name: found.picks | set(substituted[:count]) for name, count in _undoing(substituted)},
    }
    for name, picks in wanted.items():
        _add(plans, name, assemble(program, replace(found, picks=picks), setting))
    gpu.limit_seconds = _LIMIT_SECONDS
    samples = _side_by_side(gpu, plans)
    best = min(samples, key=lambda name: quantile(samples[name], 0.5))
    variants = tuple(_variant(name, plans[name], samples[name]) for name in plans)
    undone = _names(program, substituted[: dict(_undoing(substituted)).get(best, 0)])
    chosen = _with_step_times(gpu, plans[best], quantile(samples[best], 0.5))
    tell(stage, 1, 1)
    measurement = EngineMeasurement(variants, best, undone)
    return replace(chosen, plan=replace(chosen.plan, measurement=measurement))


def _add(plans: dict[str, PlanBundle], name: str, bundle: PlanBundle) -> None:
    """Take a plan up, unless one is there that does the same."""
    choices = [step.choice for step in bundle.plan.steps]
    if all(choices != [step.choice for step in each.plan.steps] for each in plans.values()):
        plans[name] = bundle


def _weakest_first(found: Found) -> list[Problem]:
    """Problems of which generated kernels took the library's place, least gain first."""

    def gain(problem: Problem) -> float:
        tuned = found.tuned[problem]
        generated, library = tuned.best_of(library=False), tuned.best_of(library=True)
        if generated is None or library is None:
            raise ValueError("a substitution has both")
        return library.trial.cost / generated.trial.cost

    return sorted((p for p in found.library if p not in found.picks), key=gain)


def _undoing(substituted: Sequence[Problem]) -> list[tuple[str, int]]:
    """Names of plans, and how many substitutions are undone for each."""
    return [(f"undone {part}/4", len(substituted) * part // 4) for part in (1, 2, 3)]


def _names(program: Program, problems: Sequence[Problem]) -> tuple[str, ...]:
    """Operators of problems, in the problems' order."""
    return tuple(o.name for each in problems for o in program.operators if o.problem == each)


def _side_by_side(gpu: GpuProcess, plans: Mapping[str, PlanBundle]) -> dict[str, tuple[float, ...]]:
    """Samples of every engine. Each round places them anew: where memory lies moves times, too.

    Those far behind the best have no part in the next one.
    """
    samples: dict[str, tuple[float, ...]] = dict.fromkeys(plans, ())
    names = list(plans)
    for turn in range(ROUNDS):
        order = names[turn % len(names) :] + names[: turn % len(names)]
        with ExitStack() as stack:
            engines = {n: stack.enter_context(_ready(plans[n], gpu)) for n in order}
            for name, engine in engines.items():
                works = [work for step in engine.bind().steps for work in step]
                samples[name] += gpu.measure(works, (), Regime.WARM, _PATIENCE).seconds
        medians = {name: quantile(samples[name], 0.5) for name in names}
        names = [name for name in names if medians[name] <= HOPELESS * min(medians.values())]
    return samples


def _ready(bundle: PlanBundle, gpu: GpuProcess) -> Engine:
    """An engine that has run once: its memory holds numbers as they come."""
    engine = Engine(bundle, gpu)
    engine.run(random_inputs(engine.plan, 0))
    return engine


def _variant(name: str, bundle: PlanBundle, seconds: Sequence[float]) -> EngineVariant:
    low, high = noise_band(seconds)
    library = sum(isinstance(step.choice, LibraryChoice) for step in bundle.plan.steps)
    generated = len(bundle.plan.steps) - library
    return EngineVariant(name, quantile(seconds, 0.5), low, high, library, generated)


def _with_step_times(gpu: GpuProcess, bundle: PlanBundle, whole: float) -> PlanBundle:
    """The plan with each step's time in the engine; the marks between steps are taken out evenly."""
    with _ready(bundle, gpu) as engine:
        times = gpu.step_seconds(engine.bind().steps)
    mark = max(0.0, sum(times) - whole) / len(times)
    steps = []
    for step, seconds in zip(bundle.plan.steps, times, strict=True):
        measured = step.evidence.measurement
        if measured is not None:
            measured = replace(measured, in_engine_seconds=max(0.0, seconds - mark))
        steps.append(replace(step, evidence=replace(step.evidence, measurement=measured)))
    return replace(bundle, plan=replace(bundle.plan, steps=tuple(steps)))
