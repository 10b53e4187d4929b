"""Rows of one element are normalised to their bias and weigh 1, whatever they are."""

import numpy as np
import pytest

from wpk.graph_passes.fold.single_elements import SingleElements

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def _text(body: str, shape: str = "3, 5, 1", vector: str = "1") -> str:
    return f"""{HEAD} g (float[{shape}] x, float[{vector}] s, float[{vector}] b) => (float[{shape}] y) {{
        {body}  y = Add(x, n) }}"""


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("n = LayerNormalization(x, s, b)", "b"),
        ("n = LayerNormalization<axis = 2, epsilon = 0.5>(x, s, b)", "b"),
        ("n = LayerNormalization(x, s)", 0.0),
        ("n = Softmax(x)", 1.0),
    ],
)
def test_writes_what_rows_of_one_element_give(prove, body, value):
    proof = prove(_text(body), SingleElements(), constants="s b")
    assert proof.ops == ["Add"]
    _, constant = proof.node("Add").inputs
    assert list(constant.shape) == [3, 5, 1]
    if value != "b":
        np.testing.assert_array_equal(constant.values, np.full((3, 5, 1), value, np.float32))


def test_takes_rows_of_several_axes_of_one_element(prove):
    text = _text("n = LayerNormalization<axis = 1>(x, s, b)", "3, 1, 1", "1, 1")
    assert prove(text, SingleElements(), constants="s b").ops == ["Add"]


def test_softmax_along_an_inner_axis(prove):
    assert prove(_text("n = Softmax<axis = 1>(x)", "3, 1, 4"), SingleElements()).ops == ["Add"]


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (_text("n = LayerNormalization(x, s, b)", "3, 5, 2", "2"), []),
        (_text("n = LayerNormalization<axis = 1>(x, s, b)", vector="5, 1"), []),
        (_text("n = Softmax<axis = 1>(x)"), []),
        (_text("n = Softmax(x)", "N, 5, 1"), []),
        (_text("n = Softmax(x)", "1024, 512, 1"), ["the constant would have 524288 elements"]),
        (
            _text("t = Relu(b)  n = LayerNormalization(x, s, t)"),
            ["its bias 't' is no constant"],
        ),
    ],
)
def test_leaves_other_rows(refusals, text, reasons):
    assert refusals(text, SingleElements()) == reasons


def test_leaves_a_graph_output(refusals):
    text = f"{HEAD} g (float[3, 1] x) => (float[3, 1] y) {{ y = Softmax(x) }}"
    assert refusals(text, SingleElements()) == []
