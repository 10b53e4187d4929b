"""Convolutions of one tensor that are only added up are one."""

import numpy as np
import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.core.query import floats
from wpk.graph_passes.products.summed_convolutions import SummedConvolutions

H = '<ir_version: 8, opset_import: ["" : 17]>'
GIVEN = """float[n, 4, 7, 6] x, float[4, 4, 3, 3] v, float[4, 4, 1, 1] w, float[4, 4, 1, 3] r, float[4] b,
    float[4, 1, 1] s, float[4, 1, 1] t, float[4, 2, 3, 3] g, float[4, 4, 2, 2] e"""
CONSTANTS = "v w r b s t g e"
SAME = "pads = [1, 1, 1, 1]"


def _text(body: str, output: str = "float[n, 4, 7, 6] y") -> str:
    return f"{H} g ({GIVEN}) => ({output}) {{ {body} }}"


@pytest.mark.parametrize(
    "body",
    [
        f"p = Conv<{SAME}>(x, v, b)  q = Conv(x, w)  y = Add(p, q)",
        f"p = Conv<{SAME}>(x, v)  q = Conv<pads = [0, 1, 0, 1]>(x, r, b)  y = Add(q, p)",
        f"p = Conv<{SAME}>(x, v, b)  q = Mul(x, s)  y = Add(p, q)",
        f"p = Conv<{SAME}, group = 2>(x, g)  m = Mul(s, x)  q = Add(m, t)  y = Add(q, p)",
    ],
)
def test_a_sum_of_convolutions_is_one(prove, body):
    proof = prove(_text(body), SummedConvolutions(), constants=CONSTANTS, batches=(1, 3))
    assert proof.ops[-1] == "Conv"
    assert proof.ops.count("Conv") == 1


def test_three_branches_are_one(load):
    body = (
        f"p = Conv<{SAME}>(x, v, b)  q = Conv(x, w, b)  a = Add(p, q)  m = Mul(x, s)  z = Add(m, t)"
    )
    graph = load(_text(f"{body}  y = Add(a, z)"), constants=CONSTANTS)
    run_passes(graph, [SummedConvolutions()])
    assert [node.op for node in graph.nodes] == ["Conv"]


def test_strided_windows_align(prove):
    body = (
        f"p = Conv<{SAME}, strides = [2, 2]>(x, v)  q = Conv<strides = [2, 2]>(x, w)  y = Add(p, q)"
    )
    proof = prove(_text(body, "float[n, 4, 4, 3] y"), SummedConvolutions(), constants=CONSTANTS)
    assert proof.ops == ["Conv"]


def test_the_middle_of_the_window_takes_the_factors(load):
    graph = load(
        _text(f"p = Conv<{SAME}>(x, v)  q = Mul(x, s)  y = Add(p, q)"), constants=CONSTANTS
    )
    before = {t.name: floats(t) for node in graph.nodes for t in node.inputs}
    run_passes(graph, [SummedConvolutions()])
    weight = floats(graph.nodes[0].inputs[1])
    difference = weight - before["v"]
    centre = difference[:, :, 1, 1]
    np.testing.assert_allclose(centre, np.diag(before["s"].reshape(-1)), atol=1e-6)
    difference[:, :, 1, 1] = 0
    assert not difference.any()


@pytest.mark.parametrize(
    "body",
    [
        f"p = Conv<{SAME}>(x, v)  r0 = Relu(x)  q = Conv(r0, w)  y = Add(p, q)",
        f"p = Conv<{SAME}>(x, v)  q = Conv<{SAME}, dilations = [1, 1], group = 2>(x, g)  y = Add(p, q)",
        "p = Conv<pads = [1, 1, 0, 0]>(x, e)  q = Conv<pads = [0, 0, 1, 1]>(x, e)  y = Add(p, q)",
        f"p = Conv<{SAME}>(x, v)  q = Conv(x, w)  z = Add(p, q)  y = Add(z, p)",
        f"p = Conv<{SAME}>(x, v)  y = Add(p, x)",
    ],
    ids=["other tensors", "other groups", "other windows", "another reader", "a residual"],
)
def test_others_stay(load, body):
    assert SummedConvolutions()(load(_text(body), constants=CONSTANTS)).rewritten == 0
