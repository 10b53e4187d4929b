"""Groups of two or three channels become groups of four or twelve, with zeros between them."""

import pytest

from wpk.graph_passes.products.merged_groups import MergedGroups

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def _text(channels: int, outputs: int, depth: int, groups: int, bias: str = ", b") -> str:
    return f"""{HEAD} g (float[N, {channels}, 5, 6] x, float[{outputs}, {depth}, 3, 3] w, float[{outputs}] b)
        => (float[N, {outputs}, 3, 3] y) {{
        y = Conv<group = {groups}, strides = [2, 2], pads = [1, 1, 1, 1]>(x, w{bias}) }}"""


@pytest.mark.parametrize(
    ("channels", "outputs", "depth", "groups", "left"),
    [(8, 8, 2, 4, 2), (8, 12, 2, 4, 2), (12, 4, 3, 4, 1), (24, 16, 3, 8, 2)],
)
def test_merges_groups(prove, channels, outputs, depth, groups, left):
    text = _text(channels, outputs, depth, groups)
    conv = prove(text, MergedGroups(), constants="w b", batches=(1, 3)).node("Conv")
    assert conv.attrs["group"] == left
    assert list(conv.inputs[1].shape) == [outputs, channels // left, 3, 3]


@pytest.mark.parametrize(
    ("channels", "outputs", "depth", "groups"),
    [(8, 8, 4, 2), (8, 8, 1, 8), (6, 6, 2, 3), (6, 4, 3, 2), (8, 8, 8, 1)],
)
def test_leaves_others(refusals, channels, outputs, depth, groups):
    assert refusals(_text(channels, outputs, depth, groups, ""), MergedGroups(), "w") == []


def test_leaves_computed_weights(refusals):
    assert refusals(_text(8, 8, 2, 4, ""), MergedGroups()) == []
