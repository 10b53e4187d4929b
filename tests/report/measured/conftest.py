"""A plan as measuring leaves it: modelled times, some operators won by a library."""

from dataclasses import replace

import numpy as np
import pytest
from support.plans.candidates import library_call

from wpk.candidate import Candidate
from wpk.libraries.cudnn_description import CUDNN
from wpk.plan.measurement import EngineMeasurement, EngineVariant
from wpk.plan.plan import PlanBundle, Step
from wpk.problems import Convolution, Matmul
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.gather import gather
from wpk.search.loop.evidence import measurement_of
from wpk.search.loop.result import Stop, TuningResult
from wpk.trial import Regime, Status, Trial

TRIALS = 24
SAMPLES = 25
UNDONE = 3
"""The matrix-like operator whose substitution did not pay."""
NOISE = 0.02
VERSION = "9.19.0"
REFUSAL = "its engines need channels in multiples of 8"


@pytest.fixture(scope="session")
def measured(bundle: PlanBundle) -> PlanBundle:
    """The plan, measured. The library is faster for the first and third matrix-like operator.

    Of these the third was undone. It refuses all that is no convolution or matrix product.
    """
    plan, rng, matrices, steps = bundle.plan, np.random.default_rng(0), 0, []
    for number, step in enumerate(plan.steps):
        matrix = isinstance(step.operator.problem, Convolution | Matmul)
        matrices += matrix
        speed = (0.8, 1.3)[matrices % 2] if matrix else None
        undone = matrices == UNDONE and matrix
        steps.append(_measured_step(step, speed, rng, both=number % 2 == 0, undone=undone))
        if undone:
            weakest = step.operator.name
    library = sum(step.image is not None for step in steps)
    total = sum(_median(step) for step in steps)
    variants = tuple(
        EngineVariant(name, total * part, total * part * 0.99, total * part * 1.01, count, left)
        for name, part, count in (
            ("models", 1.3, 0),
            ("library", 1.2, matrices),
            ("generated", 1.1, 0),
            ("mixed", 1.0, library),
        )
        for left in [len(steps) - count]
    )
    engine = EngineMeasurement(variants, "mixed", (weakest,))
    return replace(bundle, plan=replace(plan, steps=tuple(steps), measurement=engine))


def _median(step: Step) -> float:
    assert step.evidence.measurement is not None
    return step.evidence.measurement.median_seconds


def _measured_step(
    step: Step, speed: float | None, rng: np.random.Generator, *, both: bool, undone: bool
) -> Step:
    """The step with the evidence of a modelled search.

    Args:
        step: As the models chose it.
        speed: How fast the library is beside the estimate; None where it refuses.
        rng: Draws the noise.
        both: Whether a second searcher took part.
        undone: Whether the best generated kernel is chosen, whatever the library's time.
    """
    base, maker = step.evidence.estimate_seconds, step.candidate.maker
    assert base is not None
    tried = []
    for number in range(TRIALS):
        other = Candidate(maker, (("number", number),))
        candidate = step.candidate if number == TRIALS - 5 else other
        away = abs(TRIALS - 5 - number) / 4
        searcher = ("genetic", "ppo")[number % 2] if both else "genetic"
        trial = _trial(candidate, base * (1 + away), rng)
        tried.append(replace(trial, proposer=searcher))
    tried[1] = replace(tried[1], status=Status.WRONG_RESULT, seconds=(), detail="wrong")
    library = _library(base, speed, rng)
    finalists = sorted((*tried[-6:-3], *library[:1]), key=lambda each: each.cost)
    tuned = TuningResult(
        problem=step.operator.problem,
        compared=True,
        finalists=tuple(finalists),
        tried=tuple(tried),
        known=3,
        stop=Stop.NO_IMPROVEMENT,
        lookups=(f"hit: 3 schedules of {maker.name}", f"miss: no trial of {CUDNN}"),
        library=tuple(library),
        refusals=(REFUSAL,) if speed is None else (),
    )
    best = next(e.candidate for e in finalists if e.candidate.family != CUDNN or not undone)
    found = measurement_of(tuned, Regime.WARM, best)
    assert found is not None
    timed = {"measurement": found, "in_engine_seconds": 0.9 * found.median_seconds}
    step = replace(step, evidence=replace(step.evidence, **timed))
    if best.family != CUDNN:
        return step
    evidence = replace(step.evidence, estimate_seconds=None, score=None)
    return replace(step, candidate=best, launches=(), evidence=evidence)


def _library(base: float, speed: float | None, rng: np.random.Generator) -> list[Trial]:
    if speed is None:
        return []
    engines = [
        library_call((("graph", 0), ("engine", number)), CUDNN, VERSION) for number in range(4)
    ]
    tried = [
        _trial(engine, base / speed * (1 + number / 2), rng)
        for number, engine in enumerate(engines)
    ]
    failed = Trial(engines[-1], Status.LAUNCH_FAILED, (), "not supported")
    return [*tried[:-1], failed]


def _trial(candidate: Candidate, seconds: float, rng: np.random.Generator) -> Trial:
    noise = rng.normal(1.0, NOISE, SAMPLES)
    return Trial(candidate, Status.OK, tuple((seconds * noise).tolist()))


@pytest.fixture(scope="session")
def measured_facts(measured: PlanBundle) -> ReportFacts:
    """What a report says about it."""
    return gather(measured)
