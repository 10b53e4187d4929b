"""Transposed convolutions over three axes become ones over two with the same numbers."""

import pytest

from wpk.graph_passes.clean.convolution.transposed_volumes import TransposedVolumes

H = '<ir_version: 10, opset_import: ["" : 20]>'
CASES = {
    "patches": f"""{H} g (float[N, 4, 3, 2, 3] x, float[4, 3, 2, 2, 2] w, float[3] b)
        => (float[N, 3, 6, 4, 6] y) {{ y = ConvTranspose<strides = [2, 2, 2]>(x, w, b) }}""",
    "windows that overlap, cropped": f"""{H} g (float[N, 4, 3, 4, 3] x, float[4, 2, 3, 3, 3] w, float[2] b)
        => (float[N, 2, 6, 8, 6] y) {{ y = ConvTranspose<strides = [2, 2, 2], pads = [1, 1, 1, 1, 1, 1],
        output_padding = [1, 1, 1]>(x, w, b) }}""",
    "no stride": f"""{H} g (float[2, 3, 4, 3, 2] x, float[3, 2, 3, 2, 1] w) => (float[2, 2, 6, 4, 2] y)
        {{ y = ConvTranspose(x, w) }}""",
    "groups": f"""{H} g (float[3, 4, 2, 3, 2] x, float[4, 3, 4, 3, 2] w, float[6] b)
        => (float[3, 6, 4, 5, 4] y) {{ y = ConvTranspose<group = 2, strides = [2, 2, 3],
        pads = [1, 1, 0, 1, 1, 1]>(x, w, b) }}""",
    "planes that no tap reaches": f"""{H} g (float[1, 2, 3, 2, 2] x, float[2, 2, 2, 1, 1] w, float[2] b)
        => (float[1, 2, 8, 2, 2] y) {{ y = ConvTranspose<strides = [3, 1, 1]>(x, w, b) }}""",
    "cropped to the middle, gaps beside": f"""{H} g (float[2, 2, 4, 3, 3] x, float[2, 3, 5, 2, 2] w)
        => (float[2, 3, 4, 5, 5] y) {{ y = ConvTranspose<pads = [2, 0, 0, 2, 0, 0],
        dilations = [1, 2, 2]>(x, w) }}""",
}


@pytest.mark.parametrize("case", CASES)
def test_two_axes_give_the_same_numbers(prove, case):
    proof = prove(
        CASES[case],
        TransposedVolumes(),
        constants=" ".join(n for n in "wb" if f"] {n}" in CASES[case]),
        batches=(1, 3),
        terms=256,
    )
    (node,) = [n for n in proof.graph.nodes if n.op == "ConvTranspose"]
    assert len(node.inputs[0].shape) == 4


def test_two_axes_stay(load):
    graph = load(
        f"{H} g (float[1, 2, 3, 3] x, float[2, 2, 2, 2] w) => (float[1, 2, 4, 4] y) {{ y = ConvTranspose(x, w) }}"
    )
    assert TransposedVolumes()(graph).rewritten == 0


@pytest.mark.parametrize(
    ("attribute", "sizes", "reason"),
    [
        ('auto_pad = "SAME_UPPER"', "3, 3, 3", "it computes how much it pads"),
        (
            "output_shape = [4, 4, 4]",
            "4, 4, 4",
            "its padding follows from the shape of its output",
        ),
        ("dilations = [2, 1, 1]", "5, 4, 4", "its window has gaps along the depth"),
    ],
)
def test_what_it_does_not_write_is_refused(refusals, attribute, sizes, reason):
    text = f"""{H} g (float[1, 2, 3, 3, 3] x, float[2, 2, 2, 2, 2] w) => (float[1, 2, {sizes}] y)
        {{ y = ConvTranspose<{attribute}>(x, w) }}"""
    assert refusals(text, TransposedVolumes()) == [reason]
