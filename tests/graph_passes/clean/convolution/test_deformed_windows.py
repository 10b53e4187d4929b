"""Deformable convolutions become places, what is read there, and a convolution, with the same numbers."""

import pytest

from wpk.graph_passes.clean.convolution.deformed_windows import DeformedWindows

H = '<ir_version: 10, opset_import: ["" : 20]>'
CASES = {
    "with a mask and a bias": f"""{H} g (float[2, 4, 6, 5] x, float[3, 4, 3, 2] w, float[2, 12, 6, 6] o, float[3] b,
        float[2, 6, 6, 6] m) => (float[2, 3, 6, 6] y) {{ y = DeformConv<pads = [1, 1, 1, 1]>(x, w, o, b, m) }}""",
    "strides and gaps": f"""{H} g (float[1, 3, 9, 8] x, float[2, 3, 2, 3] w, float[1, 12, 4, 5] o)
        => (float[1, 2, 4, 5] y) {{ y = DeformConv<strides = [2, 1], dilations = [2, 2], pads = [0, 0, 0, 1]>(x, w, o) }}""",
    "groups of channels and of offsets": f"""{H} g (float[3, 4, 4, 5] x, float[6, 2, 2, 2] w, float[3, 16, 3, 4] o)
        => (float[3, 6, 3, 4] y) {{ y = DeformConv<group = 2, offset_group = 2>(x, w, o) }}""",
    "one mask for each group of offsets": f"""{H} g (float[2, 4, 4, 4] x, float[3, 4, 2, 2] w, float[2, 32, 3, 3] o,
        float[3] b, float[2, 16, 3, 3] m) => (float[2, 3, 3, 3] y) {{ y = DeformConv<offset_group = 4>(x, w, o, b, m) }}""",
    "a free batch": f"""{H} g (float[N, 3, 5, 5] x, float[4, 3, 3, 3] w, float[N, 18, 5, 5] o)
        => (float[N, 4, 5, 5] y) {{ y = DeformConv<pads = [1, 1, 1, 1]>(x, w, o) }}""",
}


@pytest.mark.parametrize("case", CASES)
def test_places_and_a_convolution_give_the_same_numbers(prove, case):
    constants = " ".join(n for n in "wb" if f"] {n}" in CASES[case])
    proof = prove(CASES[case], DeformedWindows(), constants=constants, batches=(1, 3), terms=256)
    assert "DeformConv" not in proof.ops
    assert "GatherElements" in proof.ops


@pytest.mark.parametrize(
    ("x", "o", "groups", "reason"),
    [
        (
            "1, 2, 4, M",
            "1, 8, 3, 3",
            1,
            "'x' has shape [1, 2, 4, 'M']: all but the batch must be known",
        ),
        (
            "1, 2, 4, 4",
            "1, 8, 3, M",
            1,
            "'o' has shape [1, 8, 3, 'M']: all but the batch must be known",
        ),
        (
            "N, 2, 4, 4",
            "N, 16, 3, 3",
            2,
            "it has several groups of offsets for a batch that is free",
        ),
    ],
)
def test_what_it_does_not_write_is_refused(refusals, x, o, groups, reason):
    text = f"""{H} g (float[{x}] x, float[2, 2, 2, 2] w, float[{o}] o) => (float[A, 2, B, C] y)
        {{ y = DeformConv<offset_group = {groups}>(x, w, o) }}"""
    assert refusals(text, DeformedWindows(), "w") == [reason]
