"""Splits of what is turned divide before the turn."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.movement.chains.reshape_chains import ReshapeChains
from wpk.graph_passes.movement.transposes.batch_in_front import BatchInFront
from wpk.graph_passes.movement.transposes.turned_splits import TurnedSplits

H = '<ir_version: 8, opset_import: ["" : 17]>'


def _text(perm, body, output, shape="n, 6, 8"):
    return f"""{H} g (float[{shape}] x) => ({output}) <int64[2] sizes = {{2, 4}}, int64[1] first = {{0}}> {{
        t = Transpose<perm = [{perm}]>(x)  {body} }}"""


CASES = {
    "the new first dimension": _text(
        "1, 0, 2", "y, z = Split<axis = 0>(t, sizes)", "float[2, n, 8] y, float[4, n, 8] z"
    ),
    "the last one, whose place is another": _text(
        "2, 0, 1", "y, z = Split<axis = -1>(t, sizes)", "float[8, n, 2] y, float[8, n, 4] z"
    ),
    "equal parts": _text("2, 0, 1", "y, z = Split(t)", "float[4, n, 6] y, float[4, n, 6] z"),
}


@pytest.mark.parametrize("case", CASES)
def test_parts_are_turned(prove, case):
    proof = prove(CASES[case], TurnedSplits(), batches=(1, 3))
    assert proof.ops == ["Split", "Transpose", "Transpose"]


def test_the_free_dimension_is_not_divided(refusals):
    text = _text(
        "1, 0, 2", "y, z = Split<axis = 1>(t, sizes)", "float[6, p, 8] y, float[6, q, 8] z"
    )
    assert refusals(text, TurnedSplits()) == []


def test_queries_and_keys_keep_their_batch_in_front(load):
    body = """q, k = Split(t)  a = Squeeze(q, first)  b = Squeeze(k, first)  y = MatMul(a, b)"""
    graph = load(_text("2, 0, 3, 1, 4", body, "float[n, 4, 5, 5] y", "n, 5, 2, 4, 5"))
    run_passes(graph, [TurnedSplits(), BatchInFront(), ReshapeChains()])
    perms = [node.attrs["perm"] for node in graph.nodes if node.op == "Transpose"]
    assert perms
    assert all(perm[0] == 0 for perm in perms)


def test_factors_of_products_are_turned_each(prove):
    body = "a, b = Split<axis = 1>(t)  d = Transpose<perm = [0, 2, 1]>(a)  y = MatMul(d, b)"
    proof = prove(_text("0, 2, 1", body, "float[n, 6, 6] y"), TurnedSplits(), batches=(1, 3))
    assert proof.ops[0] == "Split"


def test_what_is_read_otherwise_is_turned_once(load):
    text = _text("0, 2, 1", "a, b = Split<axis = 1>(t)  y = Add(a, b)", "float[n, 4, 6] y")
    assert TurnedSplits()(load(text)).rewritten == 0
