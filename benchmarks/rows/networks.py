"""Whole networks: the tuned engine beside PyTorch, interleaved in one process.

Both sides are CUDA graphs that follow each other on one stream: a sample is a number of starts, one
after another, between two events. The engine is loaded anew in each round, since where its memory lies
moves its time. What is compared is what each computes, too, with the module in float64.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from export import NETWORKS
from numpy.typing import NDArray

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.goals import Goal, as_figures
from rows.side_by_side import time_starts
from rows.torch_baselines import (
    AUTOTUNED,
    USUAL,
    TorchGraph,
    UncapturedError,
    be_strict,
    in_float64,
    keep_compiled,
)
from rows.tuned import Case, Subject, measure_tuned
from wpk.backends import open_gpu
from wpk.checks.limits import BLIND, LIMITS, OutputDistance
from wpk.checks.model_check import output_error
from wpk.device import noise_band, quantile
from wpk.dtypes import Precision
from wpk.engine import Engine
from wpk.execution import Replay
from wpk.phases import Phases
from wpk.plan.measurement import TimeBand
from wpk.plan.plan_file import read_plan

OURS = "wpk"

BASELINE_FACTOR = 2.0
"""What an engine's error may be of the baselines' largest, where that is beyond the limits."""

ROUNDS = 3
"""Times that the engine is loaded."""

PRECISIONS = (Precision.FP16, Precision.FP32)
BATCHES = (1, 32)

AUTOTUNED_CASES = tuple(Case(name, Precision.FP16, 1) for name in ("resnet50", "distilbert"))
"""What is also compared with max-autotune, in rows of its own."""

_RESNETS = ("resnet18", "resnet50")
WHAT = "speedup over the best of PyTorch"

Samples = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Median(TimeBand):
    """The median of samples between the ends of its noise band, in seconds."""

    median_seconds: float
    low_seconds: float
    high_seconds: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self:
        """Of samples."""
        return cls(quantile(seconds, 0.5), *noise_band(seconds))


def rows() -> list[Row]:
    """One a network, precision and batch."""
    claim = "the tuned engine beside PyTorch, eager and compiled, under CUDA graphs"
    cases = [
        Case(network, precision, batch)
        for batch in BATCHES
        for precision in PRECISIONS
        for network in NETWORKS
    ]
    autotuned = "the tuned engine beside PyTorch, compiled with max-autotune, under CUDA graphs"
    return [
        *(_row("network", case, USUAL, claim) for case in cases),
        *(_row("autotuned", case, AUTOTUNED, autotuned) for case in AUTOTUNED_CASES),
    ]


def _row(kind: str, case: Case, ways: Sequence[str], claim: str) -> Row:
    goal = goal_of(case)
    return Row(f"{kind}.{case}", claim, partial(tuned_beside, case, ways, goal), goals=(goal,))


def goal_of(case: Case) -> Goal:
    """How many times as fast as the best baseline a case should be."""
    if case.batch > 1:
        return Goal(WHAT, 1.15 if case.precision is Precision.FP16 else 1.5)
    if case.precision is Precision.FP16:
        return Goal(WHAT, 2.0)
    return Goal(WHAT, 3.0 if case.network in _RESNETS else 1.5)


def tuned_beside(case: Case, ways: Sequence[str], goal: Goal, context: Context) -> Outcome:
    """A case's engine beside the module that its file was exported from.

    One core loads PyTorch and the module while the case is tuned.

    Args:
        case: To be tuned.
        ways: To run the module, of `rows.torch_baselines.MODES`.
        goal: Of the speedup over the best of them.
        context: Of the row.

    Raises:
        RowError: The case cannot be exported or tuned, or PyTorch gives values that are no numbers.
    """
    case.model(context)  # what torch does not export, wpk does not refuse
    os.environ.update(keep_compiled(context.store / "torch"))
    with ThreadPoolExecutor(1, "module") as loader:
        subject = loader.submit(case.subject, context)
        measure = partial(_measure_beside, case, ways, goal, subject.result)
        return measure_tuned(case, measure, context)


def _measure_beside(
    case: Case,
    ways: Sequence[str],
    goal: Goal,
    loaded: Callable[[], Subject],
    plan: Path,
    _context: Context,
) -> Outcome:
    phases = Phases()
    phases("loading PyTorch and the module", 0, 1)
    subject = loaded()
    module, inputs = subject.module, list(subject.inputs.values())
    phases("computing in float64", 0, 1)
    right = in_float64(module, inputs, "cuda")
    be_strict()
    outputs: dict[str, Sequence[NDArray[Any]]] = {}
    with open_gpu() as device:
        graphs, uncaptured = dict[str, TorchGraph](), dict[str, str]()
        for way in ways:
            phases(f"preparing {way}", 0, 1)
            try:
                graphs[way] = TorchGraph(module, inputs, way, case, device.stream)
            except UncapturedError as error:
                uncaptured[way] = str(error)
        if not graphs:
            raise RowError(f"no way of PyTorch can be captured in a CUDA graph: {uncaptured}")
        phases("timing in turns", 0, 1)
        for way, graph in graphs.items():
            outputs[way] = graph.outputs()
            if not all(np.isfinite(each).all() for each in outputs[way]):
                raise RowError(f"{way} gives values that are no numbers: nothing to compare with")
        samples: dict[str, tuple[float, ...]] = dict.fromkeys((OURS, *graphs), ())
        given = {name: each.numpy() for name, each in subject.inputs.items()}
        for _ in range(ROUNDS):
            with Engine(read_plan(plan), device) as engine:
                outputs[OURS] = tuple(engine.run(given).values())
                starts: dict[str, Replay] = {OURS: engine.bind().replay, **graphs}
                for name, timing in time_starts(device, starts).items():
                    samples[name] += timing.seconds
    errors = {name: largest_error(found, right) for name, found in outputs.items()}
    outcome = judge(case.precision, goal, samples, errors)
    told = {"beside_phases": phases.seconds(), "uncaptured": uncaptured}
    return replace(outcome, figures=outcome.figures | told)


def largest_error(
    outputs: Sequence[NDArray[Any]], right: Sequence[NDArray[np.float64]]
) -> OutputDistance:
    """Of several outputs, the largest median and the largest error of an element."""
    errors = [output_error(*each) for each in zip(outputs, right, strict=True)]
    return OutputDistance(max(e.median for e in errors), max(e.worst for e in errors))


def is_right(precision: Precision, error: OutputDistance, others: Sequence[OutputDistance]) -> bool:
    """Whether an engine's error is within the limit, or what rounding alone explains, and says anything.

    Args:
        precision: Of all engines.
        error: Of the one that is judged.
        others: Of the engines beside it: the least of them is rounding.
    """
    rounding = OutputDistance(min(e.median for e in others), min(e.worst for e in others))
    limit = LIMITS[precision].widened(rounding, BASELINE_FACTOR)
    is_usual = error.median <= min(limit.median, BLIND.median)
    return is_usual and error.worst <= min(limit.worst, BLIND.worst)


def judge(
    precision: Precision, asked: Goal, samples: Samples, errors: Mapping[str, OutputDistance]
) -> Outcome:
    """Whether the engine is as fast as its goal asks, and as right as the baselines are.

    Args:
        precision: Of both.
        asked: Of the speedup over the best baseline.
        samples: Seconds of one inference, of `OURS` and of every baseline.
        errors: Of each, beside the module in float64.
    """
    times = {name: Median.of(seconds) for name, seconds in samples.items()}
    best = min(times.keys() - {OURS}, key=lambda name: times[name].median_seconds)
    speedup = times[OURS].speedup_over(times[best])
    goal = asked.judged_ratio(speedup)
    theirs = [error for name, error in errors.items() if name != OURS]
    rounding = OutputDistance(max(e.median for e in theirs), max(e.worst for e in theirs))
    limit = LIMITS[precision].widened(rounding, BASELINE_FACTOR)
    right = errors[OURS].median <= limit.median and errors[OURS].worst <= limit.worst
    told = ", ".join(f"{name} {microseconds(t.median_seconds)}" for name, t in times.items())
    wrong = "" if right else f"; WRONG: errors of {errors[OURS].worst:.1e}"
    figures: dict[str, Any] = {
        "times": {n: asdict(t) | {"samples": len(samples[n])} for n, t in times.items()},
        "best_baseline": best,
        "speedup": asdict(speedup),
        "right": right,
        "errors": {name: asdict(error) for name, error in errors.items()},
        "allowed_error": asdict(limit),
    }
    summary = f"{told}; {goal}{wrong}"
    return Outcome(goal.reached and right, summary, figures | as_figures([goal]))
