"""Heads that stand for several each are read by attention as they are."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.fusion.grouped_heads import GroupedHeads

INPUTS = "float[n, 6, 5, 8] q, float[n, 2, 7, 8] k, float[n, 2, 7, 4] v, float[n, 1, 5, 7] m"
REPEATED = """k1 = Unsqueeze(k, two)  k2 = Expand(k1, wide)  k3 = Reshape(k2, keys)
    v1 = Unsqueeze(v, two)  v2 = Expand(v1, wide)  v3 = Reshape(v2, values)"""
TURNED = "k4 = Transpose<perm = [0, 1, 3, 2]>(k3)"
ATTENDED = "s = MatMul(q, k4)  t = Add(s, m)  p = Softmax<axis = 3>(t)  y = MatMul(p, v3)"
BODY = f"{REPEATED} {TURNED} {ATTENDED}"


def _text(body: str, inputs: str = INPUTS, output: str = "float[n, 6, 5, 4] y") -> str:
    return f"""<ir_version: 8, opset_import: ["" : 20]> g ({inputs}) => ({output})
        <int64[1] two = {{2}}, int64[5] wide = {{1, 2, 3, 1, 1}}, int64[4] keys = {{-1, 6, 7, 8}},
        int64[4] values = {{-1, 6, 7, 4}}, int64[3] flat = {{-1, 7, 8}},
        int64[4] turned = {{-1, 6, 8, 7}}, int64[5] twice = {{1, 3, 2, 1, 1}},
        float half = {{0.5}}, float zero = {{0}}, float[6, 1, 1] slopes = {{1, 2, 3, 4, 5, 6}}> {{
        {body} }}"""


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        BODY.replace(
            f"k3 = Reshape(k2, keys)\n{' ' * 4}", f"k3 = Reshape(k2, flat)\n{' ' * 4}"
        ).replace(TURNED, "k5 = Transpose<perm = [0, 2, 1]>(k3)  k4 = Reshape(k5, turned)"),
        BODY.replace("t = Add(s, m)", "u = Mul(s, half)  t = Add(m, u)"),
        BODY.replace(
            "y = MatMul(p, v3)",
            "e = IsNaN(p)  w = Where(e, zero, p)  y = MatMul(w, v3)",
        ),
        BODY.replace("t = Add(s, m)", "u = Mul(slopes, s)  t = Add(u, m)"),
        BODY.replace(" t = Add(s, m)", "").replace("Softmax<axis = 3>(t)", "Softmax(s)"),
    ],
    ids=["plain", "three dimensions", "scaled", "guarded", "a slope a head", "no mask"],
)
def test_products_broadcast_the_heads(prove, body):
    proof = prove(_text(body), GroupedHeads(), terms=32, batches=(1, 3))
    assert "Expand" not in proof.ops
    products = [node for node in proof.graph.nodes if node.op == "MatMul"]
    assert [node.outputs[0].shape for node in products] == [["n", 2, 3, 5, 7], ["n", 2, 3, 5, 4]]
    assert [node.inputs[1].shape[1:3] for node in products] == [[2, 1], [2, 1]]


def test_the_attention_is_one_operator(load):
    graph = load(_text(BODY))
    GroupedHeads()(graph)
    run_passes(graph, [FuseOperators()])
    kinds = [node.op.rsplit("_", 1)[0] for node in graph.nodes]
    assert kinds.count("attention") == 1
    assert not {"Expand", "matmul", "softmax"} & set(kinds)


@pytest.mark.parametrize("heads", [1, 6])
def test_one_head_for_all_and_free_lengths(prove, heads):
    inputs = (
        """float[n, 6, a, 8] q, float[n, 1, b, 8] k, float[n, 1, b, 4] v, float[n, HEADS, 1, b] m"""
    )
    body = BODY.replace("keys)", "all_keys)").replace("values)", "all_values)")
    body = body.replace("wide)", "six)")
    text = _text(body, inputs.replace("HEADS", str(heads)), "float[n, 6, a, 4] y")
    new = """int64[5] six = {1, 1, 6, 1, 1}, int64[4] all_keys = {0, 6, -1, 8},
        int64[4] all_values = {0, 6, -1, 4}, float half"""
    result = prove(
        text.replace("float half", new),
        GroupedHeads(),
        terms=32,
        batches=(3,),
    )
    assert "Expand" not in result.ops


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            _text(
                BODY.replace("v2 = Expand(v1, wide)", "v2 = Expand(v1, twice)"),
                INPUTS.replace("float[n, 2, 7, 4] v", "float[n, 3, 7, 4] v"),
            ),
            "keys are repeated 3 times, values 2 times",
        ),
        (
            _text(BODY, output="float[n, 6, 5, 4] y, float[n, 6, 5, 7] p"),
            "'p' is read elsewhere",
        ),
        (
            _text(BODY + " z = Relu(s)", output="float[n, 6, 5, 4] y, float[n, 6, 5, 7] z"),
            "'s' is read elsewhere",
        ),
        (
            _text(BODY.replace("q = ", "").replace("MatMul(q,", "MatMul(heads,"), INPUTS).replace(
                "float half",
                "float[1, 6, 5, 8] heads = {" + ", ".join(["1"] * 240) + "}, float half",
            ),
            "queries, keys or values are constant",
        ),
        (
            _text(BODY.replace("axis = 3", "axis = 2")),
            "the softmax is not along the last axis",
        ),
    ],
)
def test_refuses(refusals, text, reason):
    assert refusals(text, GroupedHeads()) == [reason]


def test_wide_heads_stay(refusals):
    body = BODY.replace("values)", "wide_values)")
    text = _text(body, INPUTS.replace("7, 4] v", "7, 300] v"), "float[n, 6, 5, 300] y")
    text = text.replace("float half", "int64[4] wide_values = {-1, 6, 7, 300}, float half")
    assert refusals(text, GroupedHeads()) == [
        "heads of 8 and 300 elements are not computed in one kernel"
    ]


@pytest.mark.parametrize(
    "body",
    [
        BODY.replace("MatMul(q, k4)", "MatMul(q, k6)").replace(TURNED, f"{TURNED} k6 = Relu(k4)"),
        BODY.replace("p = Softmax<axis = 3>(t)", "p = Sigmoid(t)"),
        # weights that something works on, or that others read
        BODY.replace("y = MatMul(p, v3)", "w = Relu(p)  y = MatMul(w, v3)"),
        BODY.replace(
            "y = MatMul(p, v3)", "e = Less(p, half)  w = Where(e, zero, p)  y = MatMul(w, v3)"
        ),
        BODY.replace("y = MatMul(p, v3)", "e = IsNaN(p)  w = Where(e, half, p)  y = MatMul(w, v3)"),
        # heads in another order: h of R times G instead of G times R
        BODY.replace(
            "k3 = Reshape(k2, keys)",
            "k7 = Transpose<perm = [0, 2, 1, 3, 4]>(k2)  k3 = Reshape(k7, keys)",
        ),
    ],
)
def test_other_heads_stay(refusals, body):
    assert refusals(_text(body), GroupedHeads()) == []
