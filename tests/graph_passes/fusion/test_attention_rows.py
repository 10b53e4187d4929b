"""Attention whose rows lie apart in memory stays two products and a softmax."""

import pytest

from wpk.graph_passes.fusion.fuse_operators import FuseOperators

HEAD = '<ir_version: 8, opset_import: ["" : 20]>'
JOINED = "s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, v)"
ROWS = "a = Transpose<perm = [0, 2, 1, 3]>(x)"
"""From batch, tokens, heads, depth: rows lie together; those of keys, turned, apart."""
COLUMNS = "a = Transpose<perm = [0, 2, 3, 1]>(x)"
"""From batch, depth, heads, rows: neighbours of a row lie apart; those of keys, turned, together."""


def _model(view: str, place: str, given: str, shapes: str, rows: int) -> str:
    body = f"{view}  {JOINED}".replace(f"{place},", "a,").replace(f", {place})", ", a)")
    return f"{HEAD} g (float[N, {given}] x, {shapes}) => (float[N, 3, {rows}, 21] y) {{ {body} }}"


Q, K, V = "float[N, 3, 5, 21] q", "float[N, 3, 21, 7] k", "float[N, 3, 7, 21] v"


@pytest.mark.parametrize(
    ("view", "place", "given", "others"),
    [
        (COLUMNS, "q", "21, 3, 5", (K, V)),
        (ROWS, "k", "21, 3, 7", (Q, V)),
        (COLUMNS, "v", "21, 3, 7", (Q, K)),
    ],
)
def test_says_whose_rows_lie_apart(prove, view, place, given, others):
    text = _model(view, place, given, ", ".join(others), 5)
    proof = prove(text, FuseOperators(), rewritten=3, batches=(1, 3))
    assert not any(op.startswith("attention") for op in proof.ops)
    reasons = [each.reason for each in proof.result.refusals]
    assert "elements of a row of 'a' lie apart" in reasons


@pytest.mark.parametrize(
    ("view", "place", "given", "others"),
    [
        (ROWS, "q", "5, 3, 21", (K, V)),
        (COLUMNS, "k", "7, 3, 21", (Q, V)),
        (ROWS, "v", "7, 3, 21", (Q, K)),
    ],
)
def test_heads_of_channels_last_are_one_operator(prove, view, place, given, others):
    proof = prove(_model(view, place, given, ", ".join(others), 5), FuseOperators(), batches=(1, 3))
    assert proof.ops == ["attention_0"]


def test_few_elements_apart_are_waited_for(prove):
    text = f"""{HEAD} g (float[N, 4, 3, 7] x, float[N, 3, 5, 4] q, float[N, 3, 4, 7] k)
        => (float[N, 3, 5, 4] y) {{ v = Transpose<perm = [0, 2, 3, 1]>(x)  {JOINED} }}"""
    assert prove(text, FuseOperators(), batches=(1, 2)).ops == ["attention_0"]


@pytest.mark.parametrize("arithmetic", ["c", "Relu(c)"])
def test_rows_of_what_a_convolution_makes_are_its_channels(load, arithmetic):
    given = "c" if arithmetic == "c" else "r"
    text = f"""{HEAD} g (float[2, 4, 5, 3] x, float[63, 4, 1, 1] w, float[2, 3, 21, 7] k, float[2, 3, 7, 21] v)
        => (float[2, 3, 15, 21] y) <int64[4] heads = {{2, 3, 21, 15}}> {{
        c = Conv(x, w)  {"" if given == "c" else f"r = {arithmetic}"}  h = Reshape({given}, heads)
        q = Transpose<perm = [0, 1, 3, 2]>(h)  {JOINED} }}"""
    graph = load(text, "w")
    FuseOperators()(graph)
    assert any(node.op.startswith("attention") for node in graph.nodes)


def test_rows_along_places_of_what_a_convolution_makes_lie_apart(load):
    text = f"""{HEAD} g (float[2, 4, 7, 3] x, float[45, 4, 1, 1] w, float[2, 3, 21, 7] k, float[2, 3, 7, 21] v)
        => (float[2, 3, 15, 21] y) <int64[4] heads = {{2, 3, 15, 21}}> {{
        c = Conv(x, w)  q = Reshape(c, heads)  {JOINED} }}"""
    result = FuseOperators()(load(text, "w"))
    assert [each.reason for each in result.refusals] == ["elements of a row of 'q' lie apart"]
