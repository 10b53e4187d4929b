"""Blocks of an image are one Gather of pixels where no views read them, and so is the image that is made of them."""

from dataclasses import replace

import numpy as np
import pytest

from wpk.graph_passes.movement.chains.views import Views, trace, views_before
from wpk.graph_passes.movement.windows.blocked_pixels import BlockedPixels

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
SIZES = "int64[6] apart = {6, 8, 2, 3, 4, 2}, int64[4] blocks = {6, 8, 6, 8}, int64[6] joined = {6, 8, 3, 2, 2, 4}"
IMAGE = "int64[4] image = {2, 24, 6, 8}"
PART = "r = Reshape(c, apart)  t = Transpose<perm = [0, 1, 3, 5, 2, 4]>(r)  b = Reshape(t, blocks)"


def _text(body: str, output: str = "6, 8, 6, 8") -> str:
    return f"""{HEAD} g (float[2, 5, 6, 8] x, float[24, 5, 1, 1] w, float[6, 8, 6, 8] z, float[4, 24, 1, 1] v)
        => (float[{output}] y) <{SIZES}, {IMAGE}> {{ {body} }}"""


@pytest.mark.parametrize("made", ["c = Conv(x, w)", "d = Conv(x, w)  c = Relu(d)"])
def test_gathers_the_pixels_of_blocks(prove, made):
    proof = prove(_text(f"{made}  {PART}  y = Sigmoid(b)"), BlockedPixels(), constants="w")
    gather = proof.node("Gather")
    assert sorted(gather.inputs[1].values.tolist()) == list(range(48))
    blocks = proof.node("Sigmoid").inputs[0]
    chain = views_before(blocks)
    assert chain[0].inputs[0] is gather.outputs[0]
    for other in (2, 3):  # heads of one image have one stride, those of all images two
        assert _one_stride_each(trace(gather.outputs[0], chain), other)


def _one_stride_each(views: Views, axis: int) -> bool:
    return len(replace(views, groups=(views.groups[axis],), target=(0,)).blocks()) == 1


JOIN = "r = Reshape(z, joined)  t = Transpose<perm = [0, 1, 4, 2, 5, 3]>(r)  b = Reshape(t, image)"


def test_gathers_the_pixels_of_an_image(prove):
    proof = prove(_text(f"{JOIN}  y = Conv(b, v)", "2, 4, 6, 8"), BlockedPixels(), constants="v")
    gather = proof.node("Gather")
    chain = views_before(gather.inputs[0])
    assert trace(proof.graph.inputs[2], chain).reads_strided()
    assert np.ptp(gather.inputs[1].values) == 47


@pytest.mark.parametrize(
    ("body", "output"),
    [
        (f"c = Gelu2(x)  {PART}  y = Sigmoid(b)".replace("Gelu2(x)", "Concat<axis = 1>(x, x, x, x)"), "6, 8, 6, 8"),
        ("c = Conv(x, w)  r = Reshape(c, apart)  y = Transpose<perm = [0, 1, 3, 5, 2, 4]>(r)", "6, 8, 3, 2, 2, 4"),
        (f"{JOIN}  y = Softmax(b)", "2, 24, 6, 8"),
    ],
)  # fmt: skip
def test_leaves_what_is_no_image_or_has_strides(refusals, body, output):
    text = _text(body, output).replace(
        "[2, 5, 6, 8] x", "[2, 6, 6, 8] x" if "Concat" in body else "[2, 5, 6, 8] x"
    )
    assert refusals(text, BlockedPixels(), "w v") == []


@pytest.mark.timeout(60)
def test_readers_that_part_and_meet_again_are_asked_once(load):
    """Each step doubles the ways from the image to what reads it in the end."""
    steps = "".join(f"  b{i + 1} = Add(b{i}, b{i})" for i in range(64))
    body = f"{JOIN.replace(' b =', ' b0 =')}{steps}  y = Conv(b64, v)"
    assert BlockedPixels()(load(_text(body, "2, 4, 6, 8"), "w v")).rewritten == 1


def test_every_way_to_a_reader_must_end_in_a_convolution(prove, refusals):
    ways = f"{JOIN}  q = Relu(b)  a = Add(q, b)"
    assert prove(
        _text(f"{ways}  y = Conv(a, v)", "2, 4, 6, 8"), BlockedPixels(), constants="v"
    ).node("Gather")
    other = f"{ways}  c = Conv(a, v)  s = Softmax(q)  m = ReduceMax(s)  y = Add(c, m)"
    assert refusals(_text(other, "2, 4, 6, 8"), BlockedPixels(), "v") == []
