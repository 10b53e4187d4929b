"""Engines of today's wpk beside those that an earlier commit makes of the same model (docs/decisions/0095-engines-of-two-commits.md).

Each wpk tunes within the same budget, from a store of its own. Then three engines take turns on the GPU, each in a
process of its own: the earlier one, today's, and today's again. How far the last two are apart is noise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from export import NETWORKS
from subjects.earlier import first_on_path, unpacked

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.goals import Goal, as_figures, geometric_mean
from rows.networks import OURS, PRECISIONS, Median, is_right, largest_error
from rows.result_file import Record
from rows.trials import EARLIER_FOLDER
from rows.tuned import INPUT_SEED, Case, RefusedError, measure_tuned, plans_folder, tune
from rows.turns import Side, take_turns
from wpk.checks.limits import OutputDistance
from wpk.checks.witness import ModelReference
from wpk.device import noise_band
from wpk.dtypes import Precision
from wpk.engine import random_inputs, write_arrays
from wpk.plan.measurement import Ratio
from wpk.plan.plan_file import read_plan

BEFORE, AGAIN = "before", f"{OURS} again"

LOADS = 6
"""Times that all are loaded: where an engine's memory lies moves its time, which samples of one load do not show.
Between the least and the greatest of six lies the median of all with 97 % (1 - 2 / 2^6)."""

MOST_NOISE = 0.05
"""What two processes of one engine may be apart; beyond it somebody else uses the GPU."""

CASES = tuple(Case(name, precision, 1) for precision in PRECISIONS for name in NETWORKS)

ASKED = tuple(case for case in CASES if case.precision is Precision.FP16)
"""What `since.all` does not do without."""

NONE_SLOWER = Goal("networks that are slower beyond the noise, or wrong", 0, at_most=True)

Samples = Mapping[str, Sequence[float]]


def rows() -> list[Row]:
    """One a network and precision at batch 1, and one of all together."""
    claim = "the tuned engine is not slower beyond the noise than the one an earlier commit tunes"
    together = "no network is slower beyond the noise than with an earlier commit"
    return [
        *(Row(f"since.{case}", claim, partial(_measure, case)) for case in CASES),
        Row("since.all", together, _judge_rows, is_last=True, goals=(NONE_SLOWER,)),
    ]


def _measure(case: Case, context: Context) -> Outcome:
    package = unpacked(context.since, context.store / EARLIER_FOLDER)
    begun = time.perf_counter()
    earlier = Side(BEFORE, earlier_plan(case, package, context), package)
    took = {"before_tuning_seconds": time.perf_counter() - begun}
    outcome = measure_tuned(case, partial(_measure_beside, case, earlier), context)
    return replace(outcome, figures=outcome.figures | took)


def earlier_plan(case: Case, package: Path, context: Context) -> Path:
    """The case's plan by the wpk that lies in a folder, made where there is none.

    Raises:
        RefusedError: That wpk makes none.
    """
    store = context.store / EARLIER_FOLDER / f"{context.since}.store"
    own = replace(context, store=store, environment=first_on_path(package))
    kept = plans_folder(own, context.since) / f"{case}.plan"
    if not kept.is_file():
        try:
            tune(case, case.model(context), kept, own)
        except RefusedError as error:
            raise RefusedError(f"the wpk of {context.since}: {error}") from error
    return kept


def _measure_beside(case: Case, earlier: Side, plan: Path, context: Context) -> Outcome:
    given, inputs = random_inputs(read_plan(plan).plan, INPUT_SEED), context.folder / "inputs.npz"
    write_arrays(inputs, given)
    expected = ModelReference(case.model(context))(given)
    right = {name: array.astype(np.float64) for name, array in expected.items()}
    sides = [earlier, Side(OURS, plan), Side(AGAIN, plan)]
    loads: list[Samples] = []
    errors: dict[str, list[OutputDistance]] = {side.name: [] for side in sides}
    for _ in range(LOADS):
        context.seconds_left()
        load = take_turns(sides, inputs, context.folder)
        loads.append(load.seconds)
        for name, outputs in load.outputs.items():
            found = [outputs[output] for output in right]
            errors[name].append(largest_error(found, list(right.values())))
    largest = {
        name: OutputDistance(max(e.median for e in each), max(e.worst for e in each))
        for name, each in errors.items()
    }
    return judge(context.since, case.precision, loads, largest)


def judge(
    since: str, precision: Precision, loads: Sequence[Samples], errors: Mapping[str, OutputDistance]
) -> Outcome:
    """Whether today's engine is not slower beyond the noise, and both are right.

    Args:
        since: The earlier commit.
        precision: Of both.
        loads: Of each load, seconds of one inference of `BEFORE`, `OURS` and `AGAIN`, turn by turn.
        errors: Of each, beside ONNX Runtime on the model.

    Raises:
        RowError: Two processes of the same engine are further apart than `MOST_NOISE`.
    """
    speedup, control = (speedup_over(other, loads) for other in (BEFORE, AGAIN))
    noise = max(abs(control.low - 1), abs(control.high - 1))
    if noise > MOST_NOISE:
        raise RowError(
            f"the same engine in two processes differs by {noise:.1%}, at most {MOST_NOISE:.0%} is "
            "noise\n  fix: nobody else may use the GPU, nor the cores, meanwhile"
        )
    slower = speedup.high < 1 - noise
    wrong = [
        name
        for name, other in ((OURS, BEFORE), (BEFORE, OURS))
        if not is_right(precision, errors[name], [errors[other]])
    ]
    seconds = {name: [s for load in loads for s in load[name]] for name in loads[0]}
    times = {name: Median.of(each) for name, each in seconds.items()}
    figures: dict[str, Any] = {
        "since": since,
        "times": {n: asdict(t) | {"samples": len(seconds[n])} for n, t in times.items()},
        "best_baseline": BEFORE,
        "speedup": asdict(speedup),
        "control": asdict(control),
        "noise": noise,
        "slower": slower,
        "right": not wrong,
        "errors": {name: asdict(error) for name, error in errors.items()},
        "loads": len(loads),
    }
    told = (
        f"{OURS} {microseconds(times[OURS].median_seconds)}, {since} "
        f"{microseconds(times[BEFORE].median_seconds)}; {speedup.median:.3f} times as fast "
        f"({speedup.low:.3f} to {speedup.high:.3f}, noise {noise:.1%})"
    )
    told += "; SLOWER" if slower else ""
    told += "".join(f"; WRONG: {n}, errors of {errors[n].worst:.1e}" for n in wrong)
    return Outcome(not slower and not wrong, told, figures)


def speedup_over(other: str, loads: Sequence[Samples]) -> Ratio:
    """How many times as fast today's engine is: of each load the median over its turns, then that of all loads."""
    ratios = [
        median(theirs / ours for theirs, ours in zip(load[other], load[OURS], strict=True))
        for load in loads
    ]
    return Ratio(median(ratios), *noise_band(ratios))


def _judge_rows(context: Context) -> Outcome:
    return judge_all(context.records, context.since)


def judge_all(records: Mapping[str, Record], since: str) -> Outcome:
    """Hold all rows that were measured to one goal.

    Raises:
        RowError: One that is asked for has not been measured, or was compared with another commit.
    """
    found = {f"since.{case}": records.get(f"since.{case}", {}).get("figures", {}) for case in CASES}
    missing = [f"since.{c}" for c in ASKED if found[f"since.{c}"].get("since") != since]
    if missing:
        raise RowError(f"not compared with {since} yet: {', '.join(missing)}")
    held = {name: figures for name, figures in found.items() if figures.get("since") == since}
    ratios = {name: Ratio(**figures["speedup"]) for name, figures in held.items()}
    bad = [name for name, figures in held.items() if figures["slower"] or not figures["right"]]
    goal, mean = NONE_SLOWER.judged(len(bad)), geometric_mean([*ratios.values()])
    ascending = sorted(ratios, key=lambda name: ratios[name].median)
    figures: dict[str, Any] = {
        "since": since,
        "speedups": {name: ratios[name].median for name in ascending},
        "noise": {name: held[name]["noise"] for name in ascending},
        "mean": asdict(mean),
        "bad": bad,
    }
    summary = (
        f"{goal}{': ' if bad else ''}{', '.join(bad)}; {len(held)} networks {mean.median:.3f} times as fast "
        f"as with {since}, the least {ascending[0]} {ratios[ascending[0]].median:.3f}"
    )
    return Outcome(goal.reached, summary, figures | as_figures([goal]))
