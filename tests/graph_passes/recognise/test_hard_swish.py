"""HardSwish and HardSigmoid are found around Clip."""

import pytest

from wpk.graph_passes.recognise.hard_swish import RecognizeHardSwish


def _text(body: str, opset: int = 17) -> str:
    return f"""<ir_version: 8, opset_import: ["" : {opset}]> g (float[2, 8] x) => (float[2, 8] y)
        <float zero = {{0}}, float three = {{3}}, float six = {{6}}, float half = {{0.5}},
         float sixth = {{0.16666667}}, float one = {{1}}> {{ {body} }}"""


CLIP = "a = Add(x, three)  c = Clip(a, zero, six)"
UNIT = "a = Mul(x, sixth)  b = Add(a, half)  c = Clip(b, zero, one)"


@pytest.mark.parametrize(
    ("body", "op"),
    [
        (CLIP + " d = Mul(x, c)  y = Div(d, six)", "HardSwish"),
        (CLIP + " d = Div(c, six)  y = Mul(d, x)", "HardSwish"),
        (CLIP + " d = Mul(c, sixth)  y = Mul(x, d)", "HardSwish"),
        (UNIT + " y = Mul(x, c)", "HardSwish"),
        ("h = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x)  y = Mul(h, x)", "HardSwish"),
        (CLIP + " y = Div(c, six)", "HardSigmoid"),
        (UNIT + " y = Identity(c)", "HardSigmoid"),
    ],
)
def test_recognises(prove, body, op):
    proof = prove(_text(body), RecognizeHardSwish())
    assert op in proof.ops
    assert "Clip" not in proof.ops


@pytest.mark.parametrize(
    ("body", "opset", "reason"),
    [
        (
            CLIP + " d = Mul(x, c)  y = Div(d, six)",
            13,
            "HardSwish needs opset 14, the graph has 13",
        ),
        (
            CLIP + " d = Mul(x, c)  e = Div(d, six)  y = Add(e, c)",
            17,
            "'c' inside the pattern is read elsewhere",
        ),
    ],
)
def test_refuses(refusals, body, opset, reason):
    assert refusals(_text(body, opset), RecognizeHardSwish()) == [reason]


@pytest.mark.parametrize(
    "body",
    [
        "y = Clip(x, zero, six)",
        CLIP + " y = Div(c, three)",
        CLIP.replace("six", "three") + " d = Mul(x, c)  y = Div(d, six)",
        CLIP.replace("three)", "half)") + " d = Mul(x, c)  y = Div(d, six)",
        "h = HardSigmoid <alpha = 0.2, beta = 0.5> (x)  y = Mul(h, x)",
    ],
)
def test_leaves_other_ramps_alone(refusals, body):
    assert refusals(_text(body), RecognizeHardSwish()) == []
