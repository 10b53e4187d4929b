"""What running an engine costs beyond its graph, and engines in several threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from subjects import exported

import wpk
from rows.base import Context, Outcome, Row, RowError, microseconds
from wpk.checks.model_check import check_outputs
from wpk.checks.witness import ModelReference
from wpk.engine import random_inputs
from wpk.plan.plan import Check
from wpk.plan.plan_file import read_plan
from wpk.schedules import TEMPLATES

EXPORTED = {
    "resnet18": "tv_resnet18.dynamo",
    "resnet50": "tv_resnet50.dynamo",
    "mobilenet_v2": "tv_mobilenet_v2.dynamo",
    "distilbert": "hf_distilbert.dynamo",
    "densenet121": "tv_densenet121.dynamo",
    "inception_v3": "tv_inception_v3.dynamo",
}

NETWORKS = ("resnet18", "resnet50", "mobilenet_v2", "distilbert")
"""Whose overhead is measured."""

ALLOWED_SECONDS, ALLOWED_PART = 20e-6, 0.03
"""What the caller's clock may show beyond the graph's own time: the larger of the two."""

CUDNN = ("resnet50", "distilbert")
"""Of which there are plans in which cuDNN computes much."""

CUDNN_BUDGET = "30s"

TENSOR_CORES = ("_wgmma", "_mma", "_halo", "_patch")
"""How the names of templates end that use them."""

RUNS = 40
INPUTS = 4
"""Of each thread: runs, over so many different inputs."""

Arrays = Mapping[str, NDArray[np.generic]]


def rows() -> list[Row]:
    """Overhead of each network, and two threads."""
    overhead = "a run that is waited for costs its graph and at most max(20 µs, 3 %)"
    return [
        *(Row(f"overhead.{name}", overhead, partial(_overhead, name)) for name in NETWORKS),
        Row("threads.two_engines", "two threads run two engines, and both are right", _threads),
    ]


def static_plan(name: str, context: Context, precision: str = "fp16") -> tuple[Path, Path]:
    """A model and its plan, chosen by models: how it was chosen does not matter here.

    Args:
        name: One of `EXPORTED`.
        context: Of the row.
        precision: Of the plan.
    """
    model = context.folder / f"{name}.onnx"
    plan = model.with_suffix(".plan")
    onnx.save(exported.refill(EXPORTED[name]), model)
    options = ["--precision", precision, "--search", "static", "--cache", context.store]
    context.wpk("optimize", model, "-o", plan, "--check", "off", *options)
    return model, plan


def free_plan(context: Context) -> Path:
    """A plan in fp16 of a ResNet-18 whose batch is left free."""
    model = exported.refill("tv_resnet18.script")
    for port in (*model.graph.input, *model.graph.output):
        port.type.tensor_type.shape.dim[0].dim_param = "batch"
    del model.graph.value_info[:]
    path = context.folder / "resnet18.free.onnx"
    onnx.save(model, path)
    plan = path.with_suffix(".plan")
    options = ["--precision", "fp16", "--search", "static", "--cache", context.store]
    context.wpk("optimize", path, "-o", plan, "--check", "off", *options)
    return plan


def cudnn_plan(name: str, context: Context) -> Path:
    """A plan in fp16 in which cuDNN computes much: templates of tensor cores do not compete with it.

    Raises:
        RowError: cuDNN computes nothing in it.
    """
    model = context.folder / f"{name}.onnx"
    plan = context.folder / f"{name}.cudnn.plan"
    onnx.save(exported.refill(EXPORTED[name]), model)
    options: list[object] = ["--precision", "fp16", "--budget", CUDNN_BUDGET]
    for template in TEMPLATES:
        if template.name.endswith(TENSOR_CORES):
            options += ["--skip-template", template.name]
    options += ["--cache", context.store]
    context.wpk("optimize", model, "-o", plan, "--check", "off", *options)
    if not any(step.image for step in read_plan(plan).plan.steps):
        raise RowError(f"cuDNN computes nothing of {name}")
    return plan


def _overhead(name: str, context: Context) -> Outcome:
    _, plan = static_plan(name, context)
    bench = json.loads(context.wpk("bench", plan, "--json", "--trust").output)
    graph, host = bench["engine"]["median"], bench["started_and_awaited"]["median"]
    allowed = graph + max(ALLOWED_SECONDS, ALLOWED_PART * graph)
    figures = {"graph_seconds": graph, "run_seconds": host, "allowed_seconds": allowed}
    summary = f"graph {microseconds(graph)}, run {microseconds(host)}"
    return Outcome(host <= allowed, f"{summary}: {microseconds(host - graph)} more", figures)


def _threads(context: Context) -> Outcome:
    pairs = [static_plan(name, context) for name in ("resnet18", "mobilenet_v2")]
    found: dict[str, list[Check]] = {}
    threads = []
    barrier = threading.Barrier(len(pairs))
    for model, plan in pairs:
        target = partial(_run_often, model, plan, barrier, found.setdefault(plan.stem, []))
        threads.append(threading.Thread(target=target, name=plan.stem))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(context.seconds_left())
        context.seconds_left()
    wrong = {name: [c.detail for c in checks if c.failed] for name, checks in found.items()}
    figures = {
        "runs": {name: len(checks) for name, checks in found.items()},
        "wrong": {name: len(details) for name, details in wrong.items()},
        "last": {name: checks[-1].detail for name, checks in found.items() if checks},
    }
    passed = all(len(c) == RUNS for c in found.values()) and not any(wrong.values())
    told = [f"{name} {len(c) - len(wrong[name])} of {RUNS} right" for name, c in found.items()]
    return Outcome(passed, ", ".join(told), figures)


def _run_often(model: Path, plan: Path, barrier: threading.Barrier, checks: list[Check]) -> None:
    """Load the plan, wait for the other thread, run, and compare afterwards."""
    precision = read_plan(plan).plan.precision
    with wpk.load(plan, device="gpu", trust=True) as engine:
        inputs = [random_inputs(engine.plan, seed) for seed in range(INPUTS)]
        barrier.wait(timeout=60.0)
        outputs = [dict(engine.run(inputs[turn % INPUTS])) for turn in range(RUNS)]
    reference = ModelReference(model)
    expected = [reference(each) for each in inputs]
    for turn, output in enumerate(outputs):
        given, right = inputs[turn % INPUTS], expected[turn % INPUTS]
        checks.append(
            check_outputs(partial(_given, output), right, given, precision, f"run {turn}")
        )


def _given(outputs: Arrays, _inputs: Arrays) -> Arrays:
    return outputs
