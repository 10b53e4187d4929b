"""Rotary embeddings become products of halves, with the same numbers, and nothing near to them does."""

import re

import numpy as np
import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.catalogue import simplifying_passes
from wpk.graph_passes.recognise.rotary import RotaryHalves

X, FACTORS = "float[n, 3, 5, 8] x", "float[5, 8] c, float[5, 8] s"
HALVES = "a = Slice(x, zero, four, last)  b = Slice(x, four, end, last)"
TURNED = f"{HALVES}  m = Neg(b)  r = Concat<axis = -1>(m, a)"
BODY = f"{TURNED}  p = Mul(x, c)  q = Mul(r, s)  y = Add(p, q)"


def _text(body: str, inputs: str = f"{X}, {FACTORS}", output: str = "float[n, 3, 5, 8] y") -> str:
    return f"""<ir_version: 8, opset_import: ["" : 20]> g ({inputs}) => ({output})
        <int64[1] zero = {{0}}, int64[1] four = {{4}}, int64[1] end = {{9223372036854775807}},
        int64[1] three = {{3}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] minus = {{-4}},
        int64[1] last = {{-1}}, int64[1] front = {{3}}, int64[2] sizes = {{4, 4}}> {{ {body} }}"""


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        BODY.replace("Mul(x, c)", "Mul(c, x)").replace("Mul(r, s)", "Mul(s, r)"),
        BODY.replace("Add(p, q)", "Add(q, p)"),
        BODY.replace("four, end, last", "minus, end, front, one"),
        BODY.replace(HALVES, "a, b = Split<axis = -1>(x, sizes)"),
    ],
)
def test_a_rotation_is_two_products_of_halves(prove, body):
    proof = prove(_text(body), RotaryHalves(), terms=4, batches=(1, 3))
    assert "Concat" not in [node.op for node in proof.graph.nodes if node.outputs[0].name == "r"]
    (total,) = [node for node in proof.graph.nodes if node.op == "Add"]
    assert total.outputs[0].shape == ["n", 3, 5, 2, 4]
    assert all(tensor.inputs[0].op == "Mul" for tensor in total.inputs)


def test_constant_factors_leave_one_element_wise_graph(load):
    graph = load(_text(BODY), constants="c s")
    run_passes(graph, simplifying_passes())
    assert sorted(node.op for node in graph.nodes) == [
        "Add",
        "Mul",
        "Mul",
        "Reshape",
        "Reshape",
        "Split",
    ]


def _second(body: str) -> str:
    """The same rotation of ``z``, with names of its own."""
    words = body.replace("axis", "AXIS")
    for name in "abmrpqy":
        words = re.sub(rf"\b{name}\b", f"{name}2", words)
    return re.sub(r"\bx\b", "z", words).replace("AXIS", "axis")


def test_computed_factors_are_laid_out_once(load):
    inputs = f"{X}, float[n, 3, 5, 8] z, {FACTORS}"
    outputs = "float[n, 3, 5, 8] y, float[n, 3, 5, 8] y2"
    graph = load(_text(f"{BODY} {_second(BODY)}", inputs, outputs))
    run_passes(graph, simplifying_passes())
    assert [node.op for node in graph.nodes].count("Concat") == 2


PAIR = """a = Slice(x, zero, four, last)  b = Slice(x, four, end, last)  ac = Mul(a, c)  bs = Mul(s, b)
    as = Mul(s, a)  bc = Mul(b, c)  u = Sub(ac, bs)  v = Add(as, bc)  y = Concat<axis = -1>(u, v)"""
NARROW = f"{X}, float[5, 4] c, float[5, 4] s"


@pytest.mark.parametrize(
    "body",
    [
        PAIR,
        PAIR.replace("Add(as, bc)", "Add(bc, as)"),
        PAIR.replace("Mul(a, c)", "Mul(c, a)").replace("<axis = -1>", "<axis = 3>"),
    ],
)
def test_both_results_of_a_rotation_are_one(prove, body):
    proof = prove(_text(body, NARROW), RotaryHalves(), terms=4, batches=(1, 3))
    (total,) = [node for node in proof.graph.nodes if node.op == "Add"]
    assert total.outputs[0].shape == ["n", 3, 5, 2, 4]
    assert "Sub" not in proof.ops


def test_four_different_factors_stay_where_they_belong(prove):
    body = PAIR.replace("Mul(s, a)", "Mul(s2, a)").replace("Mul(b, c)", "Mul(b, c2)")
    inputs = f"{NARROW}, float[5, 4] s2, float[5, 4] c2"
    prove(_text(body, inputs), RotaryHalves(), terms=4, batches=(2,))


@pytest.mark.parametrize(
    "body",
    [
        PAIR.replace("Sub(ac, bs)", "Add(ac, bs)"),
        PAIR.replace("(u, v)", "(v, u)"),
        PAIR.replace("Sub(ac, bs)", "Sub(bs, ac)"),
        PAIR.replace("axis = -1", "axis = -2").replace("y =", "w =") + "  y = Reshape(w, whole)",
        PAIR.replace("Mul(b, c)", "Mul(a, c)"),
    ],
)
def test_other_results_side_by_side_stay(refusals, body):
    text = _text(body, NARROW).replace(
        "int64[1] zero", "int64[4] whole = {-1, 3, 5, 8}, int64[1] zero"
    )
    assert refusals(text, RotaryHalves()) == []


def test_factors_may_have_a_batch(prove):
    text = _text(BODY, f"{X}, float[n, 1, 5, 8] c, float[n, 1, 5, 8] s")
    prove(text, RotaryHalves(), terms=4, batches=(1, 3))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            _text(BODY, f"{X}, float[5, 1] c, float[5, 8] s"),
            "'c' has no number of its own for each of 8 elements",
        ),
        (
            _text(BODY, f"{X}, float[5, 8] c, float[1, 8] s"),
            "'c' and 's' have different shapes",
        ),
        (
            _text(
                BODY,
                "float[1, 3, 5, 8] x, float[n, 1, 5, 8] c, float[n, 1, 5, 8] s",
            ),
            "'y' has another shape than 'x'",
        ),
        (
            _text(BODY, f"float[n, 2, 3, 5, 8] x, {FACTORS}", "float[n, 2, 3, 5, 8] y"),
            "halves of 5 dimensions have more than the 5 axes that kernels walk",
        ),
        (
            _text(BODY, output="float[n, 3, 5, 8] y, float[n, 3, 5, 8] r"),
            "'r' is a graph output",
        ),
        (
            _text(BODY + " z = Relu(q)", output="float[n, 3, 5, 8] y, float[n, 3, 5, 8] z"),
            "'q' has 2 readers",
        ),
    ],
)
def test_refuses(refusals, text, reason):
    assert refusals(text, RotaryHalves()) == [reason]


@pytest.mark.parametrize(
    "body",
    [
        BODY.replace("Neg(b)", "Relu(b)"),
        BODY.replace("(m, a)", "(a, m)"),
        BODY.replace("four, end", "three, end").replace("zero, four", "zero, three"),
        BODY.replace("Slice(x, zero, four, last)", "Slice(x, zero, end, last, two)"),
        BODY.replace("Mul(x, c)", "Mul(s, c)"),
        BODY.replace("Add(p, q)", "Sub(p, q)"),
    ],
)
def test_other_arithmetic_stays(refusals, body):
    assert refusals(_text(body), RotaryHalves()) == []


def test_numbers_are_those_of_the_rotation(load, export, run_model):
    graph = load(_text(BODY))
    RotaryHalves()(graph)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 5, 8)).astype(np.float32)
    angle = rng.standard_normal((5, 4)).astype(np.float32)
    angle = np.concatenate([angle, angle], -1)
    feeds = {"x": x, "c": np.cos(angle), "s": np.sin(angle)}
    (y,) = run_model(export(graph), feeds)
    pairs = x[..., :4] + 1j * x[..., 4:]
    turned = pairs * np.exp(1j * angle[:, :4].astype(np.float64))
    np.testing.assert_allclose(y, np.concatenate([turned.real, turned.imag], -1), atol=1e-5)


EVEN = "a = Slice(x, zero, end, last, two)  b = Slice(x, one, end, last, two)"
STACKED = f"""{EVEN}  m = Neg(b)  mu = Unsqueeze(m, last)  au = Unsqueeze(a, last)
    st = Concat<axis = -1>(mu, au)  r = Reshape(st, whole)"""
PAIRS = f"{STACKED}  p = Mul(x, c)  q = Mul(r, s)  y = Add(p, q)"


def _pairs_text(body: str) -> str:
    return _text(body).replace("int64[1] zero", "int64[4] whole = {0, 0, 0, 8}, int64[1] zero")


def test_pairs_of_neighbours_are_two_products(prove):
    proof = prove(_pairs_text(PAIRS), RotaryHalves(), terms=4, batches=(1, 3))
    (total,) = [node for node in proof.graph.nodes if node.op == "Add"]
    assert total.outputs[0].shape == ["n", 3, 5, 4, 2]
    assert "r" not in {tensor.name for node in proof.graph.nodes for tensor in node.outputs}


@pytest.mark.parametrize(
    "body",
    [
        PAIRS.replace("Concat<axis = -1>(mu, au)", "Concat<axis = -1>(au, mu)"),
        PAIRS.replace("Concat<axis = -1>(mu, au)", "Concat<axis = -2>(mu, au)"),
        PAIRS.replace("m = Neg(b)", "m = Neg(a)"),
        PAIRS.replace("Slice(x, one, end, last, two)", "Slice(x, one, end, last, one)").replace(
            "a = Slice(x, zero, end, last, two)", "a = Slice(x, one, end, last, one)"
        ),
    ],
)
def test_other_pairs_stay(load, body):
    graph = load(_pairs_text(body), constants="c s")
    assert RotaryHalves()(graph).rewritten == 0


TOKENS = "t = Slice(z, zero, one, front)  x = Slice(z, one, end, front)"


@pytest.mark.parametrize("body", [BODY, PAIRS])
def test_tokens_that_are_not_rotated_are_part_of_the_rotation(prove, body):
    text = (
        _pairs_text(f"{TOKENS}  {body.replace('y =', 'o =')}  y = Concat<axis = 2>(t, o)")
        .replace("int64[1] front = {3}", "int64[1] front = {2}")
        .replace(X, "float[n, 3, 6, 8] z")
        .replace("float[n, 3, 5, 8] y", "float[n, 3, 6, 8] y")
    )
    proof = prove(text, RotaryHalves(), constants="c s", terms=4, batches=(1, 3))
    (total,) = [node for node in proof.graph.nodes if node.op == "Add"]
    assert total.outputs[0].shape[2] == 6
    assert "t" not in {tensor.name for node in proof.graph.nodes for tensor in node.outputs}


@pytest.mark.parametrize(
    "tokens",
    [
        TOKENS.replace("Slice(z, zero, one, front)", "Slice(z, one, two, front)"),  # others
        TOKENS.replace("t = Slice(z, zero", "w = Abs(z)  t = Slice(w, zero"),  # of something else
    ],
)
def test_other_rows_in_front_stay(load, tokens):
    text = (
        _text(f"{tokens}  {BODY.replace('y =', 'o =')}  y = Concat<axis = 2>(t, o)")
        .replace("int64[1] front = {3}", "int64[1] front = {2}")
        .replace(X, "float[n, 3, 6, 8] z")
        .replace("float[n, 3, 5, 8] y", "float[n, 3, 6, 8] y")
    )
    graph = load(text, constants="c s")
    assert RotaryHalves()(graph).rewritten == 1  # of the rotated rows alone
    assert graph.nodes[-1].op == "Concat" or any(
        node.op == "Concat" and node.outputs[0].name == "y" for node in graph.nodes
    )
