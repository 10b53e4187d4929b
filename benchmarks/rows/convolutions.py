"""ResNet-18's convolutions at batch 1: the tuned generated kernel beside cuDNN's best fused engine.

One model holds all twelve, each between neighbours that make it read and write what it would within
the network: channels last, but for the first, which reads the image as it is given. With 16 bits
cuDNN cannot read an image of fp32, so an operator before the first layer writes it with 16 bits, in
channels last with padding. Both sides are what ``wpk optimize`` compared in turns in the end.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rows.base import Context, Outcome, Row, RowError
from wpk.plans.measurement import Measurement
from wpk.plans.plan_file import read_plan

PRECISIONS = ("fp32", "tf32", "fp16", "bf16")

LAYERS: dict[str, tuple[int, int, int, int, int]] = {
    f"conv{f}x{f}s{s}_{c}to{k}_{size}": (c, k, size, f, s)
    for c, k, size, f, s in (
        (3, 64, 224, 7, 2),
        (64, 64, 56, 3, 1),
        (64, 64, 56, 1, 1),
        (64, 128, 56, 3, 2),
        (64, 128, 56, 1, 2),
        (128, 128, 28, 3, 1),
        (128, 256, 28, 3, 2),
        (128, 256, 28, 1, 2),
        (256, 256, 14, 3, 1),
        (256, 512, 14, 3, 2),
        (256, 512, 14, 1, 2),
        (512, 512, 7, 3, 1),
    )
}
"""Channels in and out, size of the image, filter and stride."""

FED = 8
"""Channels that a convolution's predecessor reads: few, so that it costs little."""

IMAGE_CHANNELS = 3

_WIDE = ("fp32", "tf32")
"""Precisions that keep 32 bits in memory."""


def rows() -> list[Row]:
    """One a precision."""
    claim = "table of the tuned kernels beside cuDNN's best fused engines"
    return [Row(f"convolutions.{each}", claim, partial(_measure, each)) for each in PRECISIONS]


def write_model(path: Path, precision: str) -> None:
    """The twelve layers with their neighbours, as a model with twelve inputs and outputs."""
    graph = onnx.GraphProto(name="convolutions")
    generator = np.random.default_rng(0)
    for layer in LAYERS:
        _add(graph, layer, precision, generator)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def _add(
    graph: onnx.GraphProto, layer: str, precision: str, generator: np.random.Generator
) -> None:
    c, k, size, f, s = LAYERS[layer]

    def relu(name: str, x: str) -> str:
        graph.node.append(helper.make_node("Relu", [x], [f"{name}.y"], name))
        return f"{name}.y"

    def convolve(name: str, x: str, sizes: tuple[int, ...], **attributes: Any) -> str:
        weight = generator.standard_normal(sizes, np.float32) / math.sqrt(math.prod(sizes[1:]))
        bias = generator.standard_normal(sizes[0], np.float32)
        for suffix, array in (("weight", weight), ("bias", bias)):
            graph.initializer.append(numpy_helper.from_array(array, f"{name}.{suffix}"))
        node = helper.make_node(
            "Conv", [x, f"{name}.weight", f"{name}.bias"], [f"{name}.y"], name, **attributes
        )
        graph.node.append(node)
        return f"{name}.y"

    x, before = f"{layer}.given", f"{layer}.before"
    is_first = c == IMAGE_CHANNELS
    graph.input.append(_port(x, (1, c if is_first else FED, size, size)))
    if not is_first:
        x = convolve(before, x, (c, FED, 1, 1))
    elif precision not in _WIDE:
        x = relu(before, x)
    y = convolve(layer, x, (k, c, f, f), strides=[s, s], pads=[f // 2] * 4)
    if f > 1:
        y = relu(f"{layer}.relu", y)
    pooled = f"{layer}.pooled"
    graph.node.append(helper.make_node("GlobalAveragePool", [y], [pooled], f"{layer}.after"))
    graph.output.append(_port(pooled, (1, k, 1, 1)))


def _port(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _measure(precision: str, context: Context) -> Outcome:
    model, plan = context.folder / "convolutions.onnx", context.folder / "measured.plan"
    write_model(model, precision)
    command = ["optimize", model, "-o", plan, "--precision", precision, "--cache", context.store]
    context.wpk(*command, "--effort", "1")
    table: dict[str, dict[str, Any]] = {}
    for step in read_plan(plan).plan.steps:
        for layer in set(step.operator.nodes) & LAYERS.keys():
            if step.evidence.measurement is None:
                raise RowError(f"{layer} was not measured")
            measured = figures_of(step.evidence.measurement)
            table[layer] = measured | {"bound_seconds": step.evidence.bound_seconds}
    if table.keys() != LAYERS.keys():
        raise RowError(f"no operator computes {sorted(LAYERS.keys() - table.keys())}")
    speedups = [row["speedup"]["median"] for row in table.values() if row["speedup"] is not None]
    if not speedups:
        raise RowError("cuDNN was compared with none of them")
    mean = math.exp(sum(map(math.log, speedups)) / len(speedups))
    won = sum(row["speedup"] is not None and row["speedup"]["low"] > 1 for row in table.values())
    summary = (
        f"{mean:.2f} times cuDNN's speed in the geometric mean of {len(speedups)} layers, "
        f"faster beyond noise in {won}"
    )
    figures = {"layers": table, "geometric_mean": mean}
    return Outcome(len(speedups) == len(LAYERS), summary, figures)


def figures_of(measured: Measurement) -> dict[str, Any]:
    """Both sides of one operator, and how many times as fast as cuDNN the generated kernel is."""
    generated, library = measured.generated, measured.library
    speedup = None
    if generated is not None and library is not None:
        speedup = asdict(generated.speedup_over(library))
    return {
        "generated": None if generated is None else asdict(generated),
        "cudnn": None if library is None else asdict(library),
        "refusals": list(measured.refusals),
        "speedup": speedup,
    }
