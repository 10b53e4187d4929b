"""GELU is found in every spelling, and nothing else is taken for it."""

import pytest

from wpk.graph_passes.recognise.gelu import RecognizeGelu

CONSTANTS = """<float half = {0.5}, float one = {1}, float two = {2}, float three = {3},
  float r = {0.70710678}, float q = {1.41421356}, float c = {0.044715}, float k = {0.79788456},
  float off = {0.7}>"""

ERF = [
    "a = Div(x, q)  e = Erf(a)  b = Add(e, one)  d = Mul(x, b)  y = Mul(d, half)",
    "a = Mul(r, x)  e = Erf(a)  b = Add(one, e)  d = Mul(half, x)  y = Mul(d, b)",
    "a = Mul(x, r)  e = Erf(a)  f = Mul(e, half)  b = Add(f, half)  y = Mul(b, x)",
    "a = Mul(x, r)  e = Erf(a)  f = Mul(e, x)  g = Add(f, x)  y = Div(g, two)",
]
TANH = [
    """p = Pow(x, three)  m = Mul(p, c)  s = Add(x, m)  i = Mul(s, k)  e = Tanh(i)
       b = Add(e, one)  d = Mul(x, half)  y = Mul(d, b)""",
    """p = Mul(x, x)  m = Mul(p, c)  s = Add(m, one)  t = Mul(s, x)  i = Mul(k, t)  e = Tanh(i)
       b = Add(one, e)  d = Mul(x, b)  y = Mul(half, d)""",
]


def _text(body: str, opset: int = 20) -> str:
    return f"""<ir_version: 9, opset_import: ["" : {opset}]> g (float[2, 8] x) => (float[2, 8] y)
        {CONSTANTS} {{ {body} }}"""


@pytest.mark.parametrize("body", ERF)
def test_recognises_the_exact_form(prove, body):
    proof = prove(_text(body), RecognizeGelu())
    assert proof.ops == ["Gelu"]
    assert proof.node("Gelu").attrs["approximate"] == "none"


@pytest.mark.parametrize("body", TANH)
def test_recognises_the_tanh_form(prove, body):
    proof = prove(_text(body), RecognizeGelu())
    assert proof.ops == ["Gelu"]
    assert proof.node("Gelu").attrs["approximate"] == "tanh"


@pytest.mark.parametrize(
    ("body", "opset", "reason"),
    [
        (ERF[0], 17, "Gelu needs opset 20, the graph has 17"),
        (
            "a = Mul(x, r)  e = Erf(a)  b = Add(e, one)  y = Mul(x, b)",
            20,
            "what reads 'e' is not a GELU",
        ),
        (
            ERF[0].replace("y =", "z =") + " y = Add(z, e)",
            20,
            "'e' inside the pattern is read elsewhere",
        ),
    ],
)
def test_refuses(refusals, body, opset, reason):
    assert refusals(_text(body, opset), RecognizeGelu()) == [reason]


def test_refuses_a_graph_output_inside(refusals):
    text = _text(ERF[0]).replace("=> (float[2, 8] y)", "=> (float[2, 8] y, float[2, 8] b)")
    assert refusals(text, RecognizeGelu()) == ["'b' inside the pattern is a graph output"]


@pytest.mark.parametrize(
    "body",
    [
        ERF[1].replace("Mul(r, x)", "Mul(off, x)"),
        "y = Erf(x)",
        TANH[0].replace("Pow(x, three)", "Pow(x, two)"),
    ],
)
def test_leaves_other_constants_alone(refusals, body):
    assert refusals(_text(body), RecognizeGelu()) == []


def test_refuses_constants_that_broaden(refusals):
    text = (
        _text(ERF[0])
        .replace("(float[2, 8] x)", "(float[8] x)")
        .replace("one = {1}", "[2, 1] one = {1, 1}")
    )
    (reason,) = refusals(text, RecognizeGelu())
    assert reason == "'y' has shape [2, 8], 'x' has [8]"
