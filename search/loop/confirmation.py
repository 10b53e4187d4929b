"""Whole engines confirm what was chosen on single operators; substitutions that do not pay are undone."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf

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

ROUNDS, LEAST_ROUNDS = 3, 2
"""Turns that the engines take, and those that they take however little time is left."""

FALLBACK_SAMPLES = 21
"""Executions of a step of ONNX Runtime; their median counts."""

HOPELESS = 1.05
"""Times of the best, beyond which an engine takes no further turn: placing them anew moves a time by
1 to 2 %."""

FASTER = 1.01
"""Times as fast as the fastest engine of the usual form, at the least, that one of another form must be: what both have apart was
tried a few times each, so the better of them may be the better tried. On an H200 an engine of BERT-base in another form won, and took
1.013 times as long as that of the usual one once both had been tuned alike."""

_STAGE = "comparing engines"
_PATIENCE = Patience(least=5, most=21, noise=0.005, seconds=0.5)
_LIMIT_SECONDS = 60.0


OnRivals = Callable[[Mapping[str, PlanBundle]], None]
"""Told of whole engines by name; their plans hold no evidence."""


@dataclass(frozen=True)
class EngineForm:
    """A form of a model, of which whole engines are compared.

    Attributes:
        name: What its engines are called by; empty for the usual form.
        program: The model in this form.
        tuned: What may compute its problems, and the fastest of each alone.
        setting: What plans of it are written for.
        constants: The program's, as far as plans of it have packed them.
        compared: Whether it is there to be compared with, and so in one engine only.
    """

    name: str
    program: Program
    tuned: Choices
    setting: Setting
    constants: PackedConstants
    compared: bool = False


@dataclass(frozen=True)
class _Entrant:
    """A whole engine that takes part, before it is assembled."""

    form: EngineForm
    choices: Choices


@dataclass(frozen=True)
class Confirmed:
    """The fastest whole engine.

    Attributes:
        form: Its form.
        bundle: Its plan.
        book: Why it is what it is: it says what it was compared with.
    """

    form: EngineForm
    bundle: PlanBundle
    book: EvidenceBook


def confirmed(
    forms: Sequence[EngineForm],
    static: Choices,
    gpu: GpuProcess,
    tell: Progress,
    on_rivals: OnRivals | None = None,
    seconds: float | None = None,
) -> Confirmed:
    """Return the fastest whole engine, and why it is what it is: it says what it was compared with.

    What is compared is the work of the GPU: steps that ONNX Runtime executes are the same in all engines, and
    are timed by themselves.

    Engines take turns, one inference after another: what the models chose (``models``), generated
    kernels only (``generated``), a library wherever one can (``library``), of each operator the
    fastest alone (``mixed``), and that with the weakest substitutions undone, a quarter at a time
    (``undone 1/4``, …): a kernel that is faster alone need not be so among its neighbours. The same of other
    forms of the model, by their names; of those that are only there to be compared with, the fastest of each
    operator. Another form than the usual one must be faster beyond the noise, by `FASTER`.

    Args:
        forms: The usual one first.
        static: What the models chose for that.
        gpu: Executes all of them.
        tell: Told of the progress.
        on_rivals: Told of the engines that were compared, by name.
        seconds: What comparing may take; None for no limit.

    Raises:
        LaunchError: A kernel failed.
        EngineError: There is not enough memory for all.
    """
    until = inf if seconds is None else time.monotonic() + seconds
    tell("assembling engines", 0, 1)
    usual = forms[0]
    undone = _undone(usual.tuned)
    entrants = {
        name: _Entrant(form, choices)
        for form in forms
        for name, choices in _engines(form, static if form is usual else None, undone).items()
    }
    plans = {
        n: assemble(
            e.form.program,
            e.choices.implementations,
            e.choices.kernels,
            e.form.setting,
            e.form.constants,
        )
        for n, e in entrants.items()
    }
    bench = _Bench(gpu, random_inputs(next(iter(plans.values())).plan, 0))
    samples = _side_by_side(bench, plans, until, tell)
    if on_rivals is not None:
        on_rivals(plans)
    variants = tuple(_variant(name, bundle, samples[name]) for name, bundle in plans.items())
    best = fastest_engine(variants, [n for n, each in entrants.items() if each.form is usual])
    names = tuple(
        o.name for p in undone.get(best, ()) for o in usual.program.operators if o.problem == p
    )
    times = _step_seconds(bench, plans[best], quantile(samples[best], 0.5))
    handed = _fallback_seconds(bench, plans[best])
    tell(_STAGE, ROUNDS, ROUNDS)
    evidence = evidence_of(plans[best].plan, entrants[best].choices, times, handed)
    book = EvidenceBook(evidence, measurement=EngineMeasurement(variants, best, names))
    return Confirmed(entrants[best].form, plans[best], book)


def fastest_engine(variants: Sequence[EngineVariant], usual: Collection[str]) -> str:
    """Return the name of the fastest; one of another form than the usual must be faster beyond the noise, by `FASTER`."""
    first = min((v for v in variants if v.name in usual), key=lambda each: each.median_seconds)
    others = [v for v in variants if v.name not in usual]
    other = min(others, key=lambda each: each.median_seconds, default=first)
    return other.name if other.speedup_over(first).low > FASTER else first.name


def _engines(
    form: EngineForm, static: Choices | None, undone: Mapping[str, Sequence[Problem]]
) -> dict[str, Choices]:
    """The engines of a form, by name."""
    if form.compared:
        return {form.name: form.tuned}
    variants = _variants(static, form.tuned, undone if static is not None else {})
    if static is not None:
        return variants
    return {form.name if n == "mixed" else f"{form.name} {n}": c for n, c in variants.items()}


def _variants(
    static: Choices | None, tuned: Choices, undone: Mapping[str, Sequence[Problem]]
) -> dict[str, Choices]:
    """What is compared, by name; what would execute the same candidates as one before it is left out."""
    libraries = tuned.libraries
    variants: dict[str, Choices] = {}
    if static is not None:
        variants["models"] = replace(static, results=tuned.results, regime=tuned.regime)
    variants |= {
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


def _side_by_side(
    bench: _Bench, plans: Mapping[str, PlanBundle], until: float, tell: Progress
) -> dict[str, tuple[float, ...]]:
    """Samples of every engine. Each round places them anew: where memory lies moves times, too.

    Those far behind the best have no part in the next one. When the time is over, no round begins beyond the least.
    """
    gpu = bench.gpu
    gpu.limit_seconds = _LIMIT_SECONDS
    samples: dict[str, tuple[float, ...]] = dict.fromkeys(plans, ())
    names = list(plans)
    for turn in range(ROUNDS):
        if turn >= LEAST_ROUNDS and time.monotonic() >= until:
            break
        tell(_STAGE, turn, ROUNDS)
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
