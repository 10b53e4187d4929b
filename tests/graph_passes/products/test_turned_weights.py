"""Weights of an attention come first in their product, and it is then one operator; values and result are turned."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.products.turned_weights import TurnedWeights

HEAD = '<ir_version: 8, opset_import: ["" : 20]>'


def _text(shapes: str, body: str, output: str = "float[N, 3, 11, 5] y") -> str:
    return f"{HEAD} g ({shapes}) => ({output}) {{ {body} }}"


SCORES, VALUES = "float[N, 3, 5, 7] s", "float[N, 3, 11, 7] v"
TURNED = "p = Softmax(s)  t = Transpose<perm = [0, 1, 3, 2]>(p)"


def test_turns_values_and_result(prove):
    text = _text(f"{SCORES}, {VALUES}", f"{TURNED}  y = MatMul(v, t)")
    proof = prove(text, TurnedWeights(), batches=(1, 3))
    assert sorted(proof.ops) == ["MatMul", "Softmax", "Transpose", "Transpose"]
    product = proof.node("MatMul")
    assert product.inputs[0].inputs[0].op == "Softmax"
    assert list(product.outputs[0].shape) == ["N", 3, 5, 11]


def test_repeats_values_that_all_heads_share(prove):
    text = _text(f"{SCORES}, float[1, 1, 11, 7] v", f"{TURNED}  y = MatMul(v, t)")
    assert prove(text, TurnedWeights(), batches=(1, 3)).node("MatMul")


def test_turns_matrices_without_a_batch(prove):
    body = "p = Softmax(s)  t = Transpose<perm = [1, 0]>(p)  y = MatMul(v, t)"
    prove(_text("float[5, 7] s, float[11, 7] v", body, "float[11, 5] y"), TurnedWeights())


def test_attention_of_convolutions_is_one_operator(load):
    text = f"""{HEAD} g (float[2, 6, 3, 5] x, float[84, 6, 1, 1] w) => (float[2, 36, 3, 5] y)
        <int64[4] narrow = {{2, 3, 8, 15}}, int64[4] wide = {{2, 3, 12, 15}}, int64[4] image = {{2, 36, 3, 5}},
        int64[3] parts = {{24, 24, 36}}> {{
        c = Conv(x, w)  cq, ck, cv = Split<axis = 1>(c, parts)
        q = Reshape(cq, narrow)  k = Reshape(ck, narrow)  v = Reshape(cv, wide)
        a = Transpose<perm = [0, 1, 3, 2]>(q)  s = MatMul(a, k)  {TURNED}  m = MatMul(v, t)
        o = Reshape(m, image)  y = Relu(o) }}"""
    graph = load(text, "w")
    run_passes(graph, [TurnedWeights()])
    run_passes(graph, [FuseOperators()])
    assert sum(node.op.startswith("attention") for node in graph.nodes) == 1


def test_refuses_weights_that_are_read_elsewhere(refusals):
    output = "float[N, 3, 11, 5] y, float[N, 3, 7, 5] z"
    text = _text(f"{SCORES}, {VALUES}", f"{TURNED}  y = MatMul(v, t)  z = Relu(t)", output)
    assert refusals(text, TurnedWeights()) == ["'t' has 2 readers"]


@pytest.mark.parametrize(
    "body",
    [
        "p = Softmax(s)  t = Transpose<perm = [1, 0, 3, 2]>(p)  y = MatMul(v, t)",
        "p = Relu(s)  t = Transpose<perm = [0, 1, 3, 2]>(p)  y = MatMul(v, t)",
    ],
)
def test_leaves_what_is_no_turned_softmax(refusals, body):
    shapes = "float[3, 3, 5, 7] s, float[3, 3, 11, 7] v"
    assert refusals(_text(shapes, body, "float[3, 3, 11, 5] y"), TurnedWeights()) == []
