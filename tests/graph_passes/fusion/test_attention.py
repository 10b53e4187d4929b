"""Attention: two products and the softmax between them become one operator, or say why not."""

import pytest

from wpk.graph_passes import called
from wpk.graph_passes.fusion.attention import MAX_HEAD
from wpk.graph_passes.fusion.fuse_operators import FuseOperators

H = '<ir_version: 8, opset_import: ["" : 20]>'
SHAPES = "float[N, 3, 5, 8] q, float[N, 3, 8, 7] k, float[N, 3, 7, 4] v, float[N, 1, 1, 7] mask"


def attention(body: str, result: str = "float[N, 3, 5, 4] y", shapes: str = SHAPES) -> str:
    return f"""{H} g ({shapes}) => ({result})
        <float scale = {{0.5}}, float zero = {{0}}, float one = {{1}}> {{ {body} }}"""


def test_scale_mask_guard_and_casts_are_inside(prove):
    proof = prove(
        attention(
            """s = MatMul(q, k)  d = Mul(s, scale)  m = Add(d, mask)  p = Softmax(m)  n = IsNaN(p)
            w = Where(n, zero, p)  y = MatMul(w, v)"""
        ),
        FuseOperators(),
        batches=(1, 2),
    )
    assert proof.ops == ["attention_0"]
    body = called(proof.graph, proof.graph.nodes[0])
    assert [node.op for node in body.nodes] == [
        *("MatMul", "Mul", "Add", "Softmax", "IsNaN", "Where", "MatMul")
    ]
    assert [tensor.name for tensor in body.inputs] == ["q", "k", "mask", "v"]


def test_16_bit_scores_are_widened_inside(prove):
    half = SHAPES.replace("float[", "float16[").replace("float16[N, 1", "float[N, 1")
    proof = prove(
        attention(
            """s = MatMul(q, k)  c = Cast<to = 1>(s)  m = Add(c, mask)  p = Softmax(m)
            w = Cast<to = 10>(p)  y = MatMul(w, v)""",
            "float16[N, 3, 5, 4] y",
            half,
        ),
        FuseOperators(),
        terms=2**14,  # of fp16: 2^13 units of fp32
    )
    assert proof.ops == ["attention_0"]


@pytest.mark.parametrize(
    ("body", "result", "reason"),
    [
        ("s = MatMul(q, k)  p = Softmax<axis = 1>(s)  y = MatMul(p, v)", None, "the last axis"),
        (
            """s = MatMul(q, k)  p = Softmax(s)  o = MatMul(p, v)  i = Cast<to = 6>(o)
            y = Cast<to = 1>(i)""",
            None,
            "Cast 'Cast_3' makes no floating point of the result",
        ),
        (
            "s = MatMul(q, k)  p = Softmax(s)  r = Mul(p, scale)  y = MatMul(r, v)",
            None,
            "Mul 'Mul_2' works on the weights",
        ),
        (
            """s = MatMul(q, k)  p = Softmax(s)  n = IsNaN(p)  w = Where(n, one, p)
            y = MatMul(w, v)""",
            None,
            "chosen among by something else",
        ),
        (
            "s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, v)",
            "float[N, 3, 5, 4] y, float[N, 3, 5, 7] p",
            "'p' is a graph output",
        ),
        (
            "s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, v)",
            "float[N, 3, 5, 4] y, float[N, 3, 5, 7] s",
            "'s' is a graph output",
        ),
    ],
)
def test_says_why_it_stays_three_operators(load, body, result, reason):
    graph = load(attention(body, result or "float[N, 3, 5, 4] y"))
    reasons = [refusal.reason for refusal in FuseOperators()(graph).refusals]
    assert any(reason in each for each in reasons), reasons
    assert not any(node.op.startswith("attention") for node in graph.nodes)


TURNED = "o = MatMul(p, v)  h = HardSwish(o)  y = Transpose<perm = [0, 2, 1, 3]>(h)"


@pytest.mark.parametrize(
    ("behind", "result", "last"),
    [
        ("o = MatMul(p, v)  y = HardSwish(o)", "float[N, 3, 5, 4] y", "HardSwish"),
        (TURNED, "float[N, 5, 3, 4] y", "Transpose"),
        ("o = MatMul(p, v)  h = Mul(o, scale)  y = Add(h, z)", "float[N, 3, 5, 4] y", "Add"),
    ],
)
def test_what_follows_the_result_is_inside(prove, behind, result, last):
    text = attention(
        f"s = MatMul(q, k)  m = Add(s, mask)  p = Softmax(m)  {behind}",
        result,
        f"{SHAPES}, float[N, 3, 5, 4] z",
    )
    proof = prove(text, FuseOperators(), batches=(1, 2))
    assert proof.ops == ["attention_0"]
    body = called(proof.graph, proof.graph.nodes[0])
    assert body.nodes[-1].op == last


def test_a_tensor_does_not_join_a_result_of_free_rows(load):
    shapes = "float[B, S, 8] q, float[B, 8, T] k, float[B, T, 4] v, float[B, S, 4] z"
    text = attention(
        "s = MatMul(q, k)  p = Softmax(s)  o = MatMul(p, v)  y = Add(o, z)",
        "float[B, S, 4] y",
        shapes,
    )
    reasons = [refusal.reason for refusal in FuseOperators()(load(text)).refusals]
    assert "'z' joins a result whose rows are free" in reasons


def test_joins_matrices_of_free_rows(load):
    shapes = "float[B, S, 8] q, float[B, 8, T] k, float[B, T, 4] v"
    text = attention(
        "s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, v)", "float[B, S, 4] y", shapes
    )
    graph = load(text)
    FuseOperators()(graph)
    assert [node.op.split("_")[0] for node in graph.nodes] == ["attention"]


@pytest.mark.parametrize(
    ("shapes", "result", "reason"),
    [
        ("float[5, 8] q, float[8, 7] k, float[7, 4] v", "float[5, 4] y", "has no batch"),
        (
            "float[2, 5, S] q, float[2, S, 7] k, float[2, 7, 4] v",
            "float[2, 5, 4] y",
            "all but the first and the rows of its matrices must be known",
        ),
        (
            f"float[2, 5, {MAX_HEAD + 8}] q, float[2, {MAX_HEAD + 8}, 7] k, float[2, 7, 4] v",
            "float[2, 5, 4] y",
            f"{MAX_HEAD} at most",
        ),
    ],
)
def test_refuses_sizes_that_no_kernel_has(load, shapes, result, reason):
    text = attention("s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, v)", result, shapes)
    reasons = [refusal.reason for refusal in FuseOperators()(load(text)).refusals]
    assert any(reason in each for each in reasons), reasons


def test_a_softmax_between_products_that_views_part_is_left(load):
    text = attention(
        """s = MatMul(q, k)  r = Reshape(s, flat)  p = Softmax(r)  t = Reshape(p, heads)
        y = MatMul(t, v)"""
    ).replace(
        "<float scale", "<int64[3] flat = {0, 15, 7}, int64[4] heads = {0, 3, 5, 7}, float scale"
    )
    graph = load(text)
    FuseOperators()(graph)
    assert not any(node.op.startswith("attention") for node in graph.nodes)


def test_constant_values_are_an_ordinary_product(load):
    graph = load(
        f"""{H} g (float[N, 5, 8] q, float[N, 8, 7] k, float[7, 4] w) => (float[N, 5, 4] y) {{
        s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, w) }}""",
        "w",
    )
    reasons = [refusal.reason for refusal in FuseOperators()(graph).refusals]
    assert "queries, keys or values are constant" in reasons
