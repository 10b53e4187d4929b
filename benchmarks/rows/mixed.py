"""Whole engines: the fastest of each operator beside a library wherever it can."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.tuned import Case, measure_tuned
from wpk.dtypes import Precision
from wpk.plan.measurement import EngineMeasurement
from wpk.plan.plan_file import read_plan

NETWORKS = ("resnet18", "resnet50", "mobilenet_v2", "distilbert")
PRECISIONS = (Precision.FP32, Precision.FP16)
BATCHES = (1, 32)


def rows() -> list[Row]:
    """One a network, precision and batch."""
    claim = "the chosen plan is not slower than cuDNN wherever it can, beyond the noise"
    cases = [
        Case(network, precision, batch)
        for network in NETWORKS
        for precision in PRECISIONS
        for batch in BATCHES
    ]
    return [Row(f"mixed.{case}", claim, partial(measure_tuned, case, _measure)) for case in cases]


def _measure(plan: Path, _context: Context) -> Outcome:
    written = read_plan(plan).plan
    judged = judge(written.measurement)
    checks = [check.detail for check in written.checks]
    return replace(judged, figures=judged.figures | {"checks": checks})


def judge(measured: EngineMeasurement | None) -> Outcome:
    """Whether the chosen engine is as fast as the library's, given the noise of both.

    Raises:
        RowError: No engine of a library's operators was measured.
    """
    library = None if measured is None else measured.variant("library")
    if measured is None or library is None:
        raise RowError("no engine of a library's operators was measured")
    ratio = measured.plan.speedup_over(library)
    times = ", ".join(f"{v.name} {microseconds(v.median_seconds)}" for v in measured.variants)
    summary = f"{times}; {measured.chosen} is {ratio.median:.2f} times as fast as library"
    figures = {
        "chosen": measured.chosen,
        "undone": list(measured.undone),
        "variants": {variant.name: asdict(variant) for variant in measured.variants},
        "speedup": asdict(ratio),
    }
    return Outcome(ratio.high >= 1.0, summary, figures)
