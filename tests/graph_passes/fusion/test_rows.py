"""Softmax, norms, reductions and element-wise graphs with their neighbours before and after."""

import pytest

from wpk.graph_passes import called
from wpk.graph_passes.fusion.fuse_operators import FuseOperators

H = '<ir_version: 8, opset_import: ["" : 20]>'


def test_scale_mask_softmax_and_guard_become_one_operator(prove):
    proof = prove(
        f"""{H} g (float[N, 2, 5, 5] s, float[1, 1, 5, 5] mask) => (float[N, 2, 5, 5] y)
        <float eight = {{8}}, float zero = {{0}}> {{
        d = Div(s, eight)  m = Add(d, mask)  p = Softmax<axis = -1>(m)
        n = IsNaN(p)  y = Where(n, zero, p) }}""",
        FuseOperators(),
        batches=(1, 2),
    )
    assert proof.ops == ["div_add_softmax_isnan_0"]
    assert [t.name for t in proof.graph.nodes[0].inputs] == ["s", "mask"]


def test_a_softmax_takes_the_mask_from_the_product_before_it(prove):
    proof = prove(
        f"""{H} g (float[2, 5, 4] a, float[2, 4, 5] b, float[5, 5] mask) => (float[2, 5, 5] y) {{
        s = MatMul(a, b)  m = Add(s, mask)  y = Softmax(m) }}""",
        FuseOperators(),
        rewritten=2,
    )
    assert proof.ops == ["matmul_0", "add_softmax_1"]


def test_a_product_keeps_the_sum_that_a_norm_reads(prove):
    proof = prove(
        f"""{H} g (float[2, 5, 4] a, float[4, 6] w, float[2, 5, 6] r, float[6] g, float[6] b)
        => (float[2, 5, 6] y) {{
        s = MatMul(a, w)  m = Add(s, r)  n = LayerNormalization(m, g, b)  y = Gelu(n) }}""",
        FuseOperators(),
        constants="w g b",
        rewritten=2,
    )
    assert proof.ops == ["matmul_add_0", "layernormalization_gelu_1"]


def test_a_norm_takes_the_sum_that_nobody_else_computes(prove):
    proof = prove(
        f"""{H} g (float[2, 5, 6] a, float[2, 5, 6] r, float[6] g, float[6] b)
        => (float[2, 5, 6] y) {{ m = Add(a, r)  y = LayerNormalization(m, g, b) }}""",
        FuseOperators(),
        constants="g b",
    )
    assert proof.ops == ["add_layernormalization_0"]


def test_a_reduction_takes_both_sides(prove):
    proof = prove(
        f"""{H} g (float[3, 8] x, float[3, 8] z) => (float[3, 1] y)
        <int64[1] axes = {{1}}, float eps = {{0.001}}> {{
        d = Sub(x, z)  q = Mul(d, d)  s = ReduceMean<keepdims = 1>(q, axes)
        e = Add(s, eps)  y = Sqrt(e) }}""",
        FuseOperators(),
    )
    assert proof.ops == ["sub_mul_reducemean_add_0"]
    axes = called(proof.graph, proof.graph.nodes[0]).nodes[2].inputs[1]
    assert axes.values.tolist() == [1]


def test_an_element_wise_graph_with_a_diamond_becomes_one_operator(prove):
    proof = prove(
        f"""{H} g (float[N, 8] x, float[8] c) => (float[N, 8] y) {{
        a = Exp(x)  b = Neg(a)  d = Abs(a)  e = Mul(b, c)  y = Add(e, d) }}""",
        FuseOperators(),
        batches=(1, 3),
    )
    assert len(proof.ops) == 1


def test_comparisons_and_selections_belong_to_element_wise_graphs(prove):
    proof = prove(
        f"""{H} g (float[3, 8] x, int64[3, 8] i) => (float[3, 8] y) <int64 two = {{2}}> {{
        l = Less(i, two)  f = Cast<to = 1>(l)  n = Not(l)  s = Sin(x)
        p = Mul(s, f)  y = Where(n, x, p) }}""",
        FuseOperators(),
    )
    assert len(proof.ops) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("m = Add(a, r)  y = Softmax(m)  z = MaxPool<kernel_shape=[1]>(m)", "also read by another"),
        ("z = Add(a, r)  y = Softmax(z)", "'z' is a graph output"),
        ("s = Add(c, c)  t = Mul(s, c)  y = Add(a, t)  z = Neg(r)", "the operator works on"),
    ],
)
def test_says_why_an_operand_is_not_computed_inside(load, body, reason):
    graph = load(
        f"""{H} g (float[2, 5, 6] a, float[2, 5, 6] r, float[6] c)
        => (float[2, 5, 6] y, float[2, 5, 6] z) {{ {body} }}"""
    )
    result = FuseOperators()(graph)
    assert any(reason in refusal.reason for refusal in result.refusals), result.refusals


def test_an_element_wise_graph_reads_at_most_eight_tensors(load):
    inputs = ", ".join(f"float[2, 3] r{i}" for i in range(12))
    sums = " ".join(f"s{i} = Add({'r0' if i == 1 else f's{i - 1}'}, r{i})" for i in range(1, 12))
    graph = load(f"{H} g ({inputs}) => (float[2, 3] s11) {{ {sums} }}")
    result = FuseOperators()(graph)
    assert result.rewritten == 2
    assert max(len(node.inputs) for node in graph.nodes) == 8
    assert any("more than 8 tensors" in refusal.reason for refusal in result.refusals)
