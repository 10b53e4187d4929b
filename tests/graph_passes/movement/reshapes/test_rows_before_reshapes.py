"""Constants of channels go before the Reshape that flattens tokens."""

import pytest

from wpk.graph_passes.movement.reshapes.rows_before_reshapes import RowsBeforeReshapes

H = '<ir_version: 8, opset_import: ["" : 17]>'


def _text(body: str, sizes: str = "-1, 4", output: str = "float[m, 4] y") -> str:
    given = "float[n, 3, 5] x, float[5, 4] w, float[4] s, float[1, 1, 1, 4] t, float[3, 1] c"
    count = sizes.count(",") + 1
    return f"""{H} g ({given}) => ({output}) <int64[{count}] flat = {{{sizes}}}, float[1] one = {{2}}> {{
        p = MatMul(x, w)  r = Reshape(p, flat)  {body} }}"""


@pytest.mark.parametrize("body", ["y = Mul(r, s)", "y = Sub(s, r)", "y = Div(r, s)"])
def test_a_row_goes_before_the_reshape(prove, body):
    proof = prove(_text(body), RowsBeforeReshapes(), constants="w s", batches=(1, 3))
    assert proof.ops[-1] == "Reshape"


def test_a_row_of_more_dimensions_loses_them(prove):
    text = _text("y = Add(r, t)", "-1, 1, 3, 4", "float[n, 1, 3, 4] y")
    proof = prove(text, RowsBeforeReshapes(), constants="w t", batches=(1, 3))
    assert proof.ops == ["MatMul", "Add", "Reshape"]


@pytest.mark.parametrize(
    ("body", "sizes", "output"),
    [
        ("y = Mul(r, one)", "-1, 4", "float[a, 4] y"),
        ("y = Mul(r, c)", "-1, 3, 4", "float[a, b, 4] y"),
        ("y = Mul(r, c)", "-1, 3, 2", "float[a, b, 2] y"),
    ],
)
def test_what_is_no_row_of_both_shapes_stays(load, body, sizes, output):
    assert RowsBeforeReshapes()(load(_text(body, sizes, output), constants="w s c")).rewritten == 0


def test_what_a_graph_input_holds_stays(load):
    text = f"""{H} g (float[n, 3, 4] x, float[4] s) => (float[m, 4] y) <int64[2] flat = {{-1, 4}}> {{
        r = Reshape(x, flat)  y = Mul(r, s) }}"""
    assert RowsBeforeReshapes()(load(text, constants="s")).rewritten == 0
