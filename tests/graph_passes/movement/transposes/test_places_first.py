"""Heads of the channels of a map lie in one piece where places come first."""

import pytest

from wpk.graph_passes.movement.transposes.places_first import PlacesFirst

H = '<ir_version: 8, opset_import: ["" : 17]>'
GIVEN = "float[n, 8, 3, 5] x, float[8, 8, 1, 1] w, float[n, 2, 4, 15] z"


def _text(body: str, output: str, sizes: str) -> str:
    return f"{H} g ({GIVEN}) => ({output}) <int64[4] to = {{{sizes}}}> {{ {body} }}"


@pytest.mark.parametrize("between", ["", "c = Relu(d)"])
def test_what_a_convolution_makes_is_merged_places_first(prove, between):
    conv = f"c = Conv(x, w)  {between}" if not between else f"d = Conv(x, w)  {between}"
    text = _text(f"{conv}  y = Reshape(c, to)", "float[n, 2, 4, 15] y", "-1, 2, 4, 15")
    proof = prove(text, PlacesFirst(), constants="w", batches=(1, 3))
    assert proof.ops[-3:] == ["Transpose", "Reshape", "Transpose"]
    reshape = next(node for node in proof.graph.nodes if node.op == "Reshape")
    assert list(reshape.outputs[0].shape)[1:] == [15, 2, 4]


def test_what_a_convolution_reads_is_parted_places_first(prove):
    text = _text("r = Reshape(z, to)  y = Conv(r, w)", "float[n, 8, 3, 5] y", "-1, 8, 3, 5")
    proof = prove(text, PlacesFirst(), constants="w", batches=(1, 3))
    assert proof.ops == ["Transpose", "Reshape", "Transpose", "Conv"]


@pytest.mark.parametrize(
    ("body", "output", "sizes"),
    [
        ("c = Conv(x, w)  y = Reshape(c, to)", "float[n, 2, 12, 5] y", "-1, 2, 12, 5"),
        ("c = Conv(x, w)  y = Reshape(c, to)", "float[n, 8, 15, 1] y", "-1, 8, 15, 1"),
        ("c = Neg(x)  y = Reshape(c, to)", "float[n, 2, 4, 15] y", "-1, 2, 4, 15"),
        ("r = Reshape(z, to)  y = Neg(r)", "float[n, 8, 3, 5] y", "-1, 8, 3, 5"),
    ],
    ids=["mixed", "one head", "made by no convolution", "read by none"],
)
def test_others_stay(load, body, output, sizes):
    assert PlacesFirst()(load(_text(body, output, sizes), constants="w")).rewritten == 0
