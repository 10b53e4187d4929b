"""The logistic function and SiLU come to Sigmoid."""

import pytest

from wpk.graph_passes.recognise.sigmoid import RecognizeSigmoid


def _text(body: str, opset: int = 17) -> str:
    ir = 8 if opset < 20 else 11
    return f"""<ir_version: {ir}, opset_import: ["" : {opset}]> g (float[2, 8] x) => (float[2, 8] y)
        <float one = {{1}}, float minus = {{-1}}, float zero = {{0}}, float two = {{2}}> {{ {body} }}"""


EXP = "n = Neg(x)  e = Exp(n)  d = Add(e, one)"


@pytest.mark.parametrize(
    ("body", "ops"),
    [
        (EXP + " y = Div(one, d)", ["Sigmoid"]),
        (EXP + " y = Reciprocal(d)", ["Sigmoid"]),
        (EXP + " y = Div(x, d)", ["Sigmoid", "Mul"]),
        ("n = Mul(x, minus)  e = Exp(n)  d = Add(one, e)  y = Div(x, d)", ["Sigmoid", "Mul"]),
        ("n = Sub(zero, x)  e = Exp(n)  d = Add(one, e)  y = Div(x, d)", ["Sigmoid", "Mul"]),
    ],
)
def test_recognises(prove, body, ops):
    assert prove(_text(body), RecognizeSigmoid()).ops == ops


def test_swish_is_written_out(load):
    graph = load(_text("y = Swish <alpha = 1.5> (x)", 24))
    assert RecognizeSigmoid()(graph).rewritten == 1
    assert [node.op for node in graph.nodes] == ["Mul", "Sigmoid", "Mul"]
    assert graph.nodes[0].inputs[1].values == 1.5
    assert RecognizeSigmoid()(graph).rewritten == 0


def test_refuses_an_exponential_that_is_read_elsewhere(refusals):
    text = _text(EXP + " s = Div(one, d)  y = Add(s, e)")
    assert refusals(text, RecognizeSigmoid()) == ["'e' has 2 readers"]


@pytest.mark.parametrize(
    "body",
    [
        "e = Exp(x)  d = Add(e, one)  y = Div(one, d)",
        "n = Neg(x)  e = Exp(n)  d = Add(e, two)  y = Div(one, d)",
        "y = Div(one, x)",
    ],
)
def test_leaves_other_quotients_alone(refusals, body):
    assert refusals(_text(body), RecognizeSigmoid()) == []


@pytest.mark.parametrize(
    ("inputs", "body", "broader"),
    [
        ("float x", "n = Neg(x)  e = Exp(n)  d = Add(e, ones)  y = Div(x, d)", "d"),
        ("float[1] x", "n = Neg(x)  e = Exp(n)  d = Add(e, one)  y = Div(ones, d)", "y"),
    ],
)
def test_refuses_constants_that_broaden(refusals, inputs, body, broader):
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => (float[k] y)
        <float one = {{1}}, float[3] ones = {{1, 1, 1}}> {{ {body} }}"""
    (reason,) = refusals(text, RecognizeSigmoid())
    assert reason.startswith(f"'{broader}' has shape [3]")
