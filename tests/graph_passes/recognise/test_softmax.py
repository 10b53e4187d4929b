"""Softmax is found where the maximum is subtracted."""

import pytest

from wpk.graph_passes.recognise.softmax import RecognizeSoftmax


def _text(body: str, opset: int = 13) -> str:
    return f"""<ir_version: 8, opset_import: ["" : {opset}]> g (float[n, 4, 8] x) => (float[n, 4, 8] y)
        <int64[1] last = {{-1}}, int64[1] mid = {{1}}, int64[2] both = {{1, 2}}> {{ {body} }}"""


@pytest.mark.parametrize(
    ("body", "axis"),
    [
        (
            """m = ReduceMax <axes = [1]> (x)  d = Sub(x, m)  e = Exp(d)
            s = ReduceSum(e, mid)  y = Div(e, s)""",
            1,
        ),
        (
            """m = ReduceMax <axes = [2]> (x)  d = Sub(x, m)  e = Exp(d)
            s = ReduceSum(e, last)  y = Div(e, s)""",
            2,
        ),
    ],
)
def test_recognises(prove, body, axis):
    proof = prove(_text(body), RecognizeSoftmax())
    assert proof.ops == ["Softmax"]
    assert proof.node("Softmax").attrs["axis"] == axis
    assert proof.node("Softmax").inputs[0].name == "x"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "e = Exp(x)  s = ReduceSum(e, last)  y = Div(e, s)",
            "'Exp_0' may overflow: no maximum is subtracted",
        ),
        (
            """m = ReduceMax <axes = [1]> (x)  d = Sub(x, m)  e = Exp(d)
            s = ReduceSum(e, last)  y = Div(e, s)""",
            "'Exp_2' may overflow: no maximum is subtracted",
        ),
        (
            "e = Exp(x)  s = ReduceSum(e, both)  y = Div(e, s)",
            "'ReduceSum_1' sums over axes [1, 2], Softmax over one",
        ),
        (
            "e = Exp(x)  s = ReduceSum(e, last)  q = Div(e, s)  y = Add(q, e)",
            "'e' is read elsewhere",
        ),
        ("e = Exp(x)  s = ReduceSum(e, last)  q = Div(e, s)  y = Add(q, s)", "'s' has 2 readers"),
    ],
)
def test_refuses(refusals, body, reason):
    assert refusals(_text(body), RecognizeSoftmax()) == [reason]


def test_refuses_a_dropped_axis(refusals):
    text = """<ir_version: 8, opset_import: ["" : 13]> g (float[8, 8] x) => (float[8, 8] y)
        <int64[1] last = {-1}> { e = Exp(x)  s = ReduceSum <keepdims = 0> (e, last)  y = Div(e, s) }"""
    assert refusals(text, RecognizeSoftmax()) == ["'ReduceSum_1' drops the axis that it sums over"]


def test_refuses_an_inner_axis_before_opset_13(refusals):
    text = """<ir_version: 7, opset_import: ["" : 11]> g (float[2, 4, 8] x) => (float[2, 4, 8] y) {
        e = Exp(x)  s = ReduceSum <axes = [1]> (e)  y = Div(e, s) }"""
    assert refusals(text, RecognizeSoftmax()) == [
        "Softmax flattens before opset 13, the graph has 11"
    ]


def test_refuses_computed_axes(refusals):
    text = """<ir_version: 8, opset_import: ["" : 13]> g (float[8, 8] x, int64[1] a) => (float[8, 8] y)
        { e = Exp(x)  s = ReduceSum(e, a)  y = Div(e, s) }"""
    assert refusals(text, RecognizeSoftmax()) == ["the axes of 'ReduceSum_1' are not known"]
