"""The evidence that a plan keeps of how its steps were chosen is small, and enough to understand."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from types import MappingProxyType

from wpk.assembly import predicted_evidence
from wpk.candidate import GENERATED, Candidate
from wpk.device import noise_band
from wpk.plan import Contestant, Curve, Evidence, Measurement, Plan, Step, Tally
from wpk.search.loop.choices import Choices
from wpk.search.loop.result import TuningResult
from wpk.trial import Regime, Trial, fastest


def evidence_of(
    plan: Plan,
    choices: Choices,
    in_engine: Sequence[float] | None = None,
    handed: Mapping[int, Sequence[float]] = MappingProxyType({}),
) -> tuple[Evidence, ...]:
    """Return why each step of a plan is what it is.

    Args:
        plan: The plan.
        choices: That it was assembled from.
        in_engine: Seconds of each step among its neighbours; None where nothing was measured.
        handed: Seconds of the steps that ONNX Runtime executes, by their numbers, where they were measured.
    """
    times: Sequence[float | None] = in_engine or [None] * len(plan.steps)
    return tuple(
        replace(_of(step, choices), in_engine_seconds=time)
        if step.fallback is None
        else _of_fallback(step, handed.get(number))
        for number, (step, time) in enumerate(zip(plan.steps, times, strict=True))
    )


def _of_fallback(step: Step, seconds: Sequence[float] | None) -> Evidence:
    """What a step costs that nothing was searched for."""
    if not seconds:
        return Evidence()
    low, high = noise_band(seconds)
    chosen = Contestant(
        candidate=step.candidate,
        median_seconds=median(seconds),
        low_seconds=low,
        high_seconds=high,
        samples=len(seconds),
        side_by_side=False,
    )
    nothing = "there is nothing to search: no kernel computes it"
    return Evidence(measurement=Measurement(chosen, (), Regime.WARM.value, (), 0, nothing))


def _of(step: Step, choices: Choices) -> Evidence:
    problem, candidate = step.operator.problem, step.candidate
    evidence = predicted_evidence(choices.schedules[problem])
    if candidate.family != GENERATED:
        evidence = replace(evidence, estimate_seconds=None, score=None)
    result = choices.results.get(problem)
    if result is None or choices.regime is None:
        return evidence
    return replace(evidence, measurement=measurement_of(result, choices.regime, candidate))


def measurement_of(
    result: TuningResult, regime: Regime, candidate: Candidate
) -> Measurement | None:
    """Return what was measured of a problem whose operators execute one of its candidates.

    Args:
        result: The outcome of tuning.
        regime: What the caches held.
        candidate: The one that is executed; there is no measurement where it has no time.
    """
    contestants = _contestants(result)
    named = {each.candidate: each for each in contestants}
    chosen = named.get(candidate) or _searched(result, candidate)
    if chosen is None:
        return None
    return Measurement(
        chosen=chosen,
        others=tuple(each for each in contestants if each is not chosen),
        regime=regime.value,
        tallies=_tallies((*result.tried, *result.library)),
        known=result.known,
        stop=result.stop.value,
        refusals=result.refusals,
        lookups=result.lookups,
        curves=_curves(result.tried),
    )


def _searched(result: TuningResult, candidate: Candidate) -> Contestant | None:
    """A candidate that was no finalist, as the search saw it; None where it did not run."""
    for trial in (*result.tried, *result.library):
        if trial.ran and trial.candidate == candidate:
            return _contestant(trial, side_by_side=False)
    return None


def _contestants(result: TuningResult) -> list[Contestant]:
    """The finalists, and the best of a family that has none among them; the fastest first."""
    elsewhere = {e.candidate: e.cost for e in result.elsewhere if e.seconds}
    contestants = [
        replace(
            _contestant(each, side_by_side=result.compared),
            elsewhere_seconds=elsewhere.get(each.candidate),
        )
        for each in result.finalists
        if each.ran
    ]
    present = {each.candidate.family for each in contestants}
    families: dict[str, list[Trial]] = {}
    for trial in (*result.tried, *result.library):
        families.setdefault(trial.candidate.family, []).append(trial)
    for family, tried in families.items():
        best = fastest(tried)
        if best is not None and best.ran and family not in present:
            contestants.append(_contestant(best, side_by_side=False))
    return sorted(contestants, key=lambda each: each.median_seconds)


def _contestant(trial: Trial, *, side_by_side: bool) -> Contestant:
    low, high = noise_band(trial.seconds)
    return Contestant(
        candidate=trial.candidate,
        median_seconds=trial.cost,
        low_seconds=low,
        high_seconds=high,
        samples=len(trial.seconds),
        side_by_side=side_by_side,
    )


def _tallies(trials: Sequence[Trial]) -> tuple[Tally, ...]:
    families: dict[str, Counter[str]] = {}
    for each in trials:
        families.setdefault(each.candidate.family, Counter())[each.status.value] += 1
    return tuple(Tally(name, dict(counts)) for name, counts in families.items())


def _curves(trials: Sequence[Trial]) -> tuple[Curve, ...]:
    points: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for number, each in enumerate(trials, start=1):
        curve = points.setdefault((each.candidate.maker.name, each.proposer), [])
        if each.ran and (not curve or each.cost < curve[-1][1]):
            curve.append((number, each.cost))
    return tuple(
        Curve(maker, proposer, tuple(curve)) for (maker, proposer), curve in points.items() if curve
    )
