"""Inputs and outputs without elements: what is made of them is known, and takes no memory."""

from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest

import wpk
from wpk.errors import EngineError

pytestmark = pytest.mark.usefixtures("warm_without_cubins")

H = '<ir_version: 10, opset_import: ["" : 20]>'

MODELS = {
    "a sum over nothing": """(float[2, 0, 5] x) => (float[2, 1, 5] y)
        <int64[1] a = {1}> { y = ReduceSum(x, a) }""",
    "a product over nothing beside numbers": """(float[3, 0] x, float[3, 7] z) => (float[3, 7] y)
        <int64[1] a = {1}> { p = ReduceProd(x, a)  y = Mul(p, z) }""",
    "the least of nothing": """(float[0, 3] x, float[2, 3] z) => (float[2, 3] y)
        <int64[1] a = {0}> { p = ReduceMin(x, a)  y = Min(p, z) }""",
    "a cache that is empty at first": """(float[2, 0, 5] x, float[2, 3, 5] z) => (float[2, 3, 5] y)
        { c = Concat<axis = 1>(x, z)  y = Relu(c) }""",
    "nothing comes out": "(float[2, 0, 5] x) => (float[2, 0, 5] y) { n = Neg(x)  y = Relu(n) }",
    "nothing comes out of something": """(float[3, 4] x) => (float[3, 0] y, float[3, 4] z)
        <int64[1] s = {4}, int64[1] e = {9}, int64[1] a = {1}> {
        y = Slice(x, s, e, a)  z = Neg(x) }""",
    "rows of nothing": "(float[0] x) => (float[0, 1] y) <int64[1] a = {1}> { y = Unsqueeze(x, a) }",
}


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS.keys())
def test_what_is_made_of_nothing_is_what_onnx_defines(text: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"{H} g {text}")
    wpk.optimize(model, tmp_path / "m.plan", target="h200", search="static", fallback="off")
    rng = np.random.default_rng(3)
    feeds = {
        port.name: rng.standard_normal(
            [dim.dim_value for dim in port.type.tensor_type.shape.dim], np.float32
        )
        for port in model.graph.input
    }
    right = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    with wpk.load(tmp_path / "m.plan", device="cpu") as engine:
        seen = engine.run(feeds)
        with pytest.raises(EngineError, match="'x'"):
            engine.run({**feeds, "x": np.zeros((2, 2, 2, 2), np.float32)})
    for port, expected in zip(model.graph.output, right, strict=True):
        assert seen[port.name].shape == expected.shape
        np.testing.assert_array_equal(seen[port.name], expected)
