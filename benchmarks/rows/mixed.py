"""Whole engines: the fastest of each operator beside a library wherever it can."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

from export import NETWORKS

from rows.base import Context, Outcome, Row, RowError, microseconds
from wpk.plans.measurement import EngineMeasurement
from wpk.plans.plan_file import read_plan

PRECISIONS = ("fp32", "fp16")
BATCHES = (1, 32)

_BUDGET = "45s"
"""Of measuring: a row has compiling and checking to do beside it."""


def rows() -> list[Row]:
    """One a network, precision and batch."""
    claim = "the chosen plan is not slower than cuDNN wherever it can, beyond the noise"
    return [
        Row(
            f"mixed.{network}.{precision}.b{batch}",
            claim,
            partial(_measure, network, precision, batch),
        )
        for network in NETWORKS
        for precision in PRECISIONS
        for batch in BATCHES
    ]


def _measure(network: str, precision: str, batch: int, context: Context) -> Outcome:
    model, plan = context.exported(network), context.folder / "measured.plan"
    command = ["optimize", model, "-o", plan, "--precision", precision, "--cache", context.store]
    shapes = ["--shapes", NETWORKS[network].shapes(batch)]
    context.wpk(*command, *shapes, "--effort", "1", "--budget", _BUDGET)
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
