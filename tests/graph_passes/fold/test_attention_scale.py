"""Scalar factors of attention end in weights or behind the product."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.fold.attention_scale import ScaleBehindProduct, ScaleIntoProjection
from wpk.graph_passes.fold.constants_into_weights import ConstantsIntoWeights, ScaleThroughBias

HEAD = """<ir_version: 8, opset_import: ["" : 17]>
  g (float[1, 6, 8] x, float[8, 8] w, float[8] b) => (float[p, q, r, s] y)
  <int64[4] heads = {1, 6, 2, 4}, float s = {0.25}, float four = {4}, float[8] c = {1, 2, 3, 4, 5, 6, 7, 8}>"""
SPLIT = "h = Reshape(a, heads)  t = Transpose <perm = [0, 2, 1, 3]> (h)"


@pytest.mark.parametrize("scale", ["Mul(t, s)", "Mul(s, t)", "Div(t, four)"])
def test_a_factor_moves_to_the_projection(prove, scale):
    text = f"{HEAD} {{ m = MatMul(x, w)  a = Add(m, b)  {SPLIT}  z = {scale}  y = Relu(z) }}"
    proof = prove(text, ScaleIntoProjection(), constants="w b")
    assert proof.ops == ["MatMul", "Add", "Mul", "Reshape", "Transpose", "Relu"]


def test_the_factor_ends_in_the_weights(load):
    graph = load(
        f"{HEAD} {{ m = MatMul(x, w)  a = Add(m, b)  {SPLIT}  z = Mul(t, s)  y = Relu(z) }}", "w b"
    )
    run_passes(graph, [ScaleIntoProjection(), ScaleThroughBias(), ConstantsIntoWeights()])
    assert [n.op for n in graph.nodes] == ["MatMul", "Add", "Reshape", "Transpose", "Relu"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"a = MatMul(x, w)  {SPLIT}  z = Mul(t, s)  y = Add(z, t)", "'t' has 2 readers"),
        (
            f"a = MatMul(x, w)  {SPLIT}  z = Mul(t, s)  y = Add(z, o)  o = Relu(a)",
            "'a' has 2 readers",
        ),
    ],
)
def test_projection_refuses_shared_values(refusals, body, reason):
    if "Relu(a)" in body:
        body = f"""a = MatMul(x, w)  o = Relu(a)  {SPLIT}  z = Mul(t, s)  f = Flatten(o)
            e = Unsqueeze(f, ax)  u = Reshape(e, back)  y = Add(z, u)"""
    text = HEAD.replace("float s =", "int64[1] ax = {0}, int64[4] back = {1, 2, 6, 4}, float s =")
    assert refusals(f"{text} {{ {body} }}", ScaleIntoProjection(), "w b") == [reason]


@pytest.mark.parametrize(
    "body",
    [
        "a = Relu(x)  h = Reshape(a, heads)  y = Mul(h, s)",
        "a = MatMul(x, w)  h = Mul(a, c)  y = Reshape(h, heads)",
    ],
)
def test_projection_leaves_other_chains_alone(refusals, body):
    assert refusals(f"{HEAD} {{ {body} }}", ScaleIntoProjection(), "w b") == []


PRODUCT = """<ir_version: 8, opset_import: ["" : 17]>
  g (float[2, 6, 8] a, float[2, 8, 6] b) => (float[2, 6, 6] y) <float s = {0.5}, float t = {4}>"""


@pytest.mark.parametrize(
    ("body", "factor"),
    [
        ("c = Mul(a, s)  d = Div(b, t)  y = MatMul(c, d)", 0.125),
        ("c = Mul(s, a)  y = MatMul(c, b)", 0.5),
    ],
)
def test_factors_of_both_operands_go_behind_the_product(prove, body, factor):
    proof = prove(f"{PRODUCT} {{ {body} }}", ScaleBehindProduct())
    assert proof.ops == ["MatMul", "Mul"]
    assert proof.node("Mul").inputs[1].values == factor


def test_a_factor_that_is_read_elsewhere_stays(refusals):
    text = f"{PRODUCT} {{ c = Mul(a, s)  d = MatMul(c, b)  e = ReduceMax(c)  y = Add(d, e) }}"
    assert refusals(text, ScaleBehindProduct()) == ["'c' has 2 readers"]


def test_a_factor_goes_behind_the_product_through_views(prove):
    proof = prove(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 3, 4] x, float[n, 5, 4] z) => (float[n, 3, 5] y)
        <float s = {0.5}> { k = Mul(z, s)  t = Transpose<perm = [0, 2, 1]>(k)  y = MatMul(x, t) }""",
        ScaleBehindProduct(),
        batches=(1, 3),
    )
    assert proof.ops == ["Transpose", "MatMul", "Mul"]
