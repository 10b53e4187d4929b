"""Where a plan's time goes: its operators beside what each needs at the least."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

from wpk.plan.plan import Outcome, Plan, Step

SHOWN = 5
"""Problems that are told, those that lose most first."""


def plan_figures(plan: Plan) -> dict[str, Any]:
    """What the figures of a row that tuned a plan say of its operators.

    ``plan`` holds the sums over all operators in seconds, and those of each kind, the nodes that ONNX Runtime
    executes, and the whole engine's checks that say nothing. ``beyond_bound`` holds the problems that take most beyond their
    bound, each with all operators that it is the problem of.
    """
    steps = plan.steps
    measured = plan.measurement
    figures = {
        "operators": len(steps),
        "libraries": sum(step.image is not None for step in steps),
        "fallback": [name for step in steps if step.fallback for name in step.fallback.operators],
        "kinds": _by_kind(steps),
        "bound_seconds": fsum(step.evidence.bound_seconds for step in steps),
        "estimate_seconds": fsum(step.evidence.estimate_seconds or 0.0 for step in steps),
        "operators_seconds": fsum(map(seconds_of, steps)),
        "engine_seconds": None if measured is None else measured.median_seconds,
        "inconclusive": [c.detail for c in plan.checks if c.outcome is Outcome.INCONCLUSIVE],
    }
    return {"plan": figures, "beyond_bound": beyond_bound(steps)[:SHOWN]}


def beyond_bound(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Each problem with what its operators take beyond their bounds, the most first; all in seconds."""
    by_problem: dict[str, list[Step]] = {}
    for step in steps:
        by_problem.setdefault(step.operator.problem.words(), []).append(step)
    told = [_told(words, equal) for words, equal in by_problem.items()]
    return sorted(told, key=lambda each: -float(each["beyond_seconds"]))


def seconds_of(step: Step) -> float:
    """Time of an operator: among its neighbours, else alone, else as it is predicted."""
    evidence = step.evidence
    alone = None if evidence.measurement is None else evidence.measurement.median_seconds
    return evidence.in_engine_seconds or alone or evidence.estimate_seconds or 0.0


def _by_kind(steps: Sequence[Step]) -> dict[str, dict[str, float]]:
    """How many operators each kind of problem has, and what they take together in seconds."""
    found: dict[str, list[float]] = {}
    for step in steps:
        found.setdefault(type(step.operator.problem).__name__, []).append(seconds_of(step))
    return {
        kind: {"operators": len(seconds), "seconds": fsum(seconds)}
        for kind, seconds in sorted(found.items())
    }


def _told(words: str, steps: Sequence[Step]) -> dict[str, Any]:
    """Of equal problems: sums in seconds, and how the slowest of them is computed."""
    slowest = max(steps, key=seconds_of)
    evidence, measured = slowest.evidence, slowest.evidence.measurement
    seconds, bounds = map(
        fsum, zip(*((seconds_of(s), s.evidence.bound_seconds) for s in steps), strict=True)
    )
    figures: dict[str, Any] = {
        "problem": words,
        "operators": len(steps),
        "slowest": slowest.operator.name,
        "nodes": list(slowest.operator.nodes),
        "seconds": seconds,
        "bound_seconds": bounds,
        "beyond_seconds": seconds - bounds,
        "bound_by": evidence.bound_by,
        "made_by": slowest.candidate.maker.title,
        "configuration": dict(slowest.candidate.configuration),
        "one_estimate_seconds": evidence.estimate_seconds,
        "one_bound_seconds": evidence.bound_seconds,
        "one_in_engine_seconds": evidence.in_engine_seconds,
    }
    if measured is None:
        return figures
    library = measured.library
    return figures | {
        "one_seconds": measured.median_seconds,
        "one_library_seconds": None if library is None else library.median_seconds,
        "trials": measured.trials,
        "stop": measured.stop,
    }
