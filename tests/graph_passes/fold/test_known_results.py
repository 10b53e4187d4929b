"""What is known of a model's outputs, and matrices of a shape alone, are constants."""

import numpy as np
import pytest

from wpk.graph_passes.fold.known_results import KnownResults

H = '<ir_version: 8, opset_import: ["" : 18]>'


@pytest.mark.parametrize(("op", "port", "right"), [
    ("Shape(x)", "int64[3]", [2, 3, 4]),
    ("Shape<start = -2>(x)", "int64[2]", [3, 4]),
    ("Shape<start = 1, end = -1>(x)", "int64[1]", [3]),
    ("Size(x)", "int64", 24),
    ("Add(c, c)", "float[2]", [2.0, 4.0]),
])  # fmt: skip
def test_a_known_output_is_a_copy_of_a_constant(prove, op, port, right):
    text = f"""{H} g (float[2, 3, 4] x) => ({port} y, float[2, 3, 4] z)
        <float[2] c = {{1, 2}}> {{ y = {op}  z = Relu(x) }}"""
    proof = prove(text, KnownResults())
    assert sorted(proof.ops) == ["Identity", "Relu"]
    (copy,) = [node for node in proof.graph.nodes if node.op == "Identity"]
    np.testing.assert_array_equal(copy.inputs[0].values, right)
    assert copy.outputs[0].name == "y"


def test_a_window_is_as_exact_as_its_definition(prove):
    text = f"""{H} g (float[2] x) => (float[11] y, float[2] z)
        <int64 size = {{11}}> {{ y = HannWindow(size)  z = Relu(x) }}"""
    proof = prove(text, KnownResults())
    (copy,) = [node for node in proof.graph.nodes if node.op == "Identity"]
    right = np.sin(np.pi * np.arange(11) / 11) ** 2
    np.testing.assert_allclose(copy.inputs[0].values, right, atol=2.0**-22)


@pytest.mark.parametrize("attributes", ["", "<k = 1>", "<k = -2, dtype = 7>"])
def test_an_identity_matrix_is_a_constant(prove, attributes):
    cast = "m = Cast<to = 1>(e)" if "dtype" in attributes else "m = Identity(e)"
    text = f"""{H} g (float[3, 4] x) => (float[3, 4] y) {{
        e = EyeLike{attributes}(x)  {cast}  y = Mul(x, m) }}"""
    proof = prove(text, KnownResults())
    assert "EyeLike" not in proof.ops


@pytest.mark.parametrize("text", [
    "g (float[n, 3] x) => (int64[2] y) { y = Shape(x) }",
    "g (float[n, 3] x) => (float[n, 3] y) { y = EyeLike(x) }",
    "g (float[2, 3] x) => (int64[2] s, float[2, 3] y) { t = Shape(x)  s = Abs(t)  y = Relu(x) }",
    "g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { y = Identity(c) }",
])  # fmt: skip
def test_leaves_what_is_not_known_or_is_a_copy(refusals, text):
    assert refusals(f"{H} {text}", KnownResults()) == []
