"""Measured plans of the tests' networks, verified on the GPU and on the CPU."""

from __future__ import annotations

from functools import partial

import onnx
from subjects import exported

from rows.base import Context, Outcome, Row

PRECISIONS = ("fp32", "tf32", "fp16", "bf16")

FREE_BATCHES = (1, 8)
"""Sizes that a free batch is also given."""

EMULATED = ("tv_resnet18.dynamo", "tv_mobilenet_v2.dynamo")
"""Networks whose measured plans, as exported, are also verified on the CPU."""

EXPORTED = "exported"
"""The size that a model is exported with, or a free one."""

_BUDGET = "10s"
"""Of measuring: here the numbers of what was chosen count, not how good the choice is."""


def rows() -> list[Row]:
    """One a network and precision; recurrent networks are not supported."""
    claim = "plans written where they are measured verify with exit code 0"
    return [
        Row(f"verify.{network}.{precision}", claim, partial(_measure, network, precision))
        for network in exported.model_names()
        if "rnn" not in network
        for precision in PRECISIONS
    ]


def _measure(network: str, precision: str, context: Context) -> Outcome:
    path = context.folder / f"{network}.onnx"
    model = exported.refill(network)
    onnx.save(model, path)
    figures = {}
    for name, shapes in _sizes(model).items():
        plan = context.folder / f"{name}.plan"
        command = ["optimize", path, "-o", plan, "--precision", precision, *shapes]
        measuring = ["--search", "auto", "--effort", "0", "--budget", _BUDGET]
        context.wpk(*command, *measuring, "--cache", context.store)
        said = context.wpk("verify", plan, path, "--device", "gpu", "--seeds", "3")
        figures[f"{name}.gpu"] = _last(said.output)
        if network in EMULATED and name == EXPORTED:
            said = context.wpk("verify", plan, path, "--device", "cpu", "--seeds", "1")
            figures[f"{name}.cpu"] = _last(said.output)
    return Outcome(True, f"exit code 0 of {', '.join(figures)}", figures)


def _sizes(model: onnx.ModelProto) -> dict[str, list[str]]:
    """Options that decide the batch, by what to call the plan."""
    sizes: dict[str, list[str]] = {EXPORTED: []}
    for info in model.graph.input:
        first, *rest = info.type.tensor_type.shape.dim
        if first.dim_param:
            for batch in FREE_BATCHES:
                shape = "x".join(map(str, (batch, *(dim.dim_value for dim in rest))))
                sizes[f"batch_{batch}"] = ["--shapes", f"{info.name}:{shape}"]
    return sizes


def _last(output: str) -> str:
    """The last line of ``wpk verify``: the last seed's errors."""
    return output.strip().splitlines()[-1].strip()
