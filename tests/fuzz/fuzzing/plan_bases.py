"""Small honest plans that the plan fuzzer damages: between them they use every kind of problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.plans.quick_search import compile_one

import wpk
from wpk.engine import random_inputs
from wpk.plan.plan import PlanBundle
from wpk.plan.plan_file import read_plan

MODELS = {
    "convolutions": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 4, 6, 6] x) => (float[N, 5] y) {
            c = Conv<pads = [1, 1, 1, 1]>(x, w8_4_3_3, w8)
            r = Relu(c)
            p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
            d = Conv<group = 8, pads = [1, 1, 1, 1]>(p, w8_1_3_3)
            a = GlobalAveragePool(d)
            f = Flatten(a)
            y = Gemm<transB = 1>(f, w5_8, w5)
        }""",
    "attention": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2, 4, 8] x) => (float[2, 4, 8] y) {
            q = MatMul(x, w8_8)
            k = Transpose<perm = [0, 2, 1]>(x)
            s = MatMul(q, k)
            p = Softmax<axis = -1>(s)
            o = MatMul(p, x)
            n = LayerNormalization(o, w8, w8)
            y = Add(n, x)
        }""",
    "movement": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 3, 4, 4] x, int64[3] i) => (float[N, 3, 10, 10] y, float[N, 3, 4] s, float[3, 4] e)
        <float[4] t = {1.0, 1.0, 2.0, 2.0}, int64[8] a = {0, 0, 1, 1, 0, 0, 1, 1}> {
            u = Resize<mode = "nearest">(x, , t)
            y = Pad(u, a)
            s = ReduceSum<keepdims = 0>(x, w_axes)
            e = Gather(w7_4, i)
        }""",
    "joins": """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 4, 5] x, bool[N, 4, 5] m) => (float[N, 8, 5] y, float[N, 4, 5] z) {
            a = Tanh(x)
            b = Where(m, x, a)
            y = Concat<axis = 1>(a, b)
            c = Mul(b, w4_1)
            t = Transpose<perm = [0, 2, 1]>(c)
            z = Reshape(t, w_shape)
        }""",
}
"""Constants are named by their shapes; those with other names hold integers."""

INTEGERS = {"w_axes": [-1], "w_shape": [0, 4, 5]}
PRECISIONS = ("fp32", "fp16")


@dataclass(frozen=True)
class Base:
    """An honest plan.

    Attributes:
        name: Model and precision.
        model: Its file.
        plan: Its file.
        bundle: What that holds.
        inputs: Drawn once.
        outputs: What the plan makes of them.
    """

    name: str
    model: Path
    plan: Path
    bundle: PlanBundle
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]


def bases(folder: Path, precisions: Sequence[str]) -> list[Base]:
    """Write every model, and a plan of it in every precision."""
    return [_base(folder, name, precision) for name in MODELS for precision in precisions]


def _base(folder: Path, name: str, precision: str) -> Base:
    model, plan = folder / f"{name}.onnx", folder / f"{name}-{precision}.plan"
    onnx.save(_model(MODELS[name]), model)
    with pytest.MonkeyPatch.context() as patch:
        compile_one(patch)
        wpk.optimize(model, plan, target="h200", precision=precision, search="static", check="off")
    bundle = read_plan(plan)
    inputs = random_inputs(bundle.plan, 0)
    with wpk.load(plan, "cpu") as engine:
        outputs = engine.run(inputs)
    return Base(f"{name} {precision}", model, plan, bundle, dict(inputs), dict(outputs))


def _model(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    known = {each.name for each in model.graph.initializer}
    for name in dict.fromkeys(n for node in model.graph.node for n in node.input):
        if not name.startswith("w") or name in known:
            continue
        if name in INTEGERS:
            array = np.array(INTEGERS[name], np.int64)
        else:
            shape = [int(n) for n in name[1:].split("_")]
            array = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.checker.check_model(model, full_check=True)
    return model
