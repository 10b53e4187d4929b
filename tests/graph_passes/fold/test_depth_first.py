"""The filters of a convolution take the order of the channels behind a DepthToSpace."""

import pytest

from wpk.graph_passes.fold.depth_first import DepthFirst

H = '<ir_version: 8, opset_import: ["" : 17]>'
SHUFFLE = 'y = DepthToSpace<blocksize = 2, mode = "CRD">(c)'


def _text(
    conv: str, behind: str = SHUFFLE, outputs: str = "float[n, 3, 8, 10] y", part: int = 4
) -> str:
    return f"""{H} g (float[n, 4, 4, 5] x, float[12, {part}, 3, 3] w, float[12] b) => ({outputs})
        {{ c = Conv<pads = [1, 1, 1, 1]{conv}  {behind} }}"""


@pytest.mark.parametrize("conv", [">(x, w)", ">(x, w, b)"])
def test_filters_are_turned(prove, conv):
    proof = prove(_text(conv), DepthFirst(), constants="w b", batches=(1, 3))
    assert proof.ops == ["Conv", "DepthToSpace"]
    assert proof.node("DepthToSpace").attrs["mode"] == "DCR"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_text(", group = 2>(x, w)", part=2), "has groups of channels"),
        (_text(">(x, w)", SHUFFLE + "  z = Relu(c)", "float[n, 3, 8, 10] y, float[n, 12, 4, 5] z"), "'c' has 2 readers"),
    ],
)  # fmt: skip
def test_refuses_what_others_read_and_groups(refusals, text, reason):
    (seen,) = refusals(text, DepthFirst(), "w b")
    assert reason in seen


def test_what_is_depth_first_stays(refusals):
    assert refusals(_text(">(x, w)", SHUFFLE.replace("CRD", "DCR")), DepthFirst(), "w b") == []
