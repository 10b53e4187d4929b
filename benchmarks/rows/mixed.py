"""Whole engines: the fastest of each operator beside a library wherever it can."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

from export import NETWORKS

from rows.base import Context, Outcome, Row, RowError, microseconds
from wpk.engine.engine import Engine
from wpk.engine.inputs import random_inputs
from wpk.engine.measurement import EngineMeasurement
from wpk.engine.model_check import ModelReference, check_outputs
from wpk.engine.plan import PlanBundle
from wpk.engine.plan_file import read_plan
from wpk.libraries.gpu import GpuDevice

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
    # The emulator would compute every image of a large batch; the whole engine is checked below.
    check = ["--check", "on" if batch == 1 else "off"]
    context.wpk(*command, *shapes, *check, "--effort", "1", "--budget", _BUDGET)
    bundle = read_plan(plan)
    judged = judge(bundle.plan.measurement)
    right, error = _compare(bundle, model)
    figures = judged.figures | {"onnx_runtime": error, "right": right}
    return Outcome(judged.passed and right, judged.summary, figures)


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


def _compare(bundle: PlanBundle, model: Path) -> tuple[bool, str]:
    """Whether the engine gives what ONNX Runtime gives, and its error in words."""
    with GpuDevice() as device, Engine(bundle, device) as engine:
        inputs = random_inputs(bundle.plan, 0)
        reference = ModelReference(model)
        check = check_outputs(engine.run, reference, inputs, bundle.plan.precision, "seed 0")
    return check.passed, check.detail
