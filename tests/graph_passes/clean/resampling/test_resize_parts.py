"""Resampling without a kernel becomes selections and products."""

import pytest

from wpk.graph_passes.clean.resampling.resize_parts import ResizeParts

H = '<ir_version: 10, opset_import: ["" : 20]>'
X = "float[2, 3, 7, 5] x"


def resize(attributes: str, shape: str, sizes: str, *, by: str = "sizes") -> str:
    kind = "int64" if by == "sizes" else "float"
    count = sizes.count(",") + 1
    inputs = "x, , , sizes" if by == "sizes" else "x, , scales"
    return f"""{H} g ({X}) => (float[{shape}] y) <{kind}[{count}] {by} = {{{sizes}}}>
        {{ y = Resize<{attributes}>({inputs}) }}"""


CASES = {
    "cubic": (resize('mode = "cubic"', "2, 3, 11, 8", "2, 3, 11, 8"), "MatMul"),
    "cubic of smaller weights": (
        resize(
            'mode = "cubic", cubic_coeff_a = -0.5, exclude_outside = 1', "2, 3, 4, 3", "2, 3, 4, 3"
        ),
        "MatMul",
    ),
    "cubic from corner to corner": (
        resize(
            'mode = "cubic", coordinate_transformation_mode = "align_corners"',
            "2, 3, 13, 9",
            "2, 3, 13, 9",
        ),
        "MatMul",
    ),
    "without aliases": (
        resize('mode = "linear", antialias = 1', "2, 3, 4, 3", "2, 3, 4, 3"),
        "MatMul",
    ),
    "of some axes": (
        resize('mode = "nearest", axes = [3, 2]', "2, 3, 3, 15", "3.0, 0.5", by="scales"),
        "Gather",
    ),
    "that keeps the ratio": (
        resize(
            'mode = "nearest", axes = [2, 3], keep_aspect_ratio_policy = "not_larger"',
            "2, 3, 11, 8",
            "14, 8",
        ),
        "Gather",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_weights_give_the_same_numbers(prove, case):
    text, op = CASES[case]
    proof = prove(text, ResizeParts())
    assert "Resize" not in proof.ops
    assert op in proof.ops


def test_what_lies_outside_has_the_value_that_is_given(prove):
    proof = prove(
        f"""{H} g ({X}) => (float[2, 3, 4, 6] y)
        <float[8] roi = {{0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7}}, int64[4] sizes = {{2, 3, 4, 6}}>
        {{ y = Resize<mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize",
          extrapolation_value = 10.0>(x, roi, , sizes) }}""",
        ResizeParts(),
    )
    assert "Where" in proof.ops


def test_what_the_kernel_does_stays(load):
    text = resize('mode = "linear"', "2, 3, 11, 8", "2, 3, 11, 8")
    assert ResizeParts()(load(text)).rewritten == 0


def test_a_region_that_is_computed_is_refused(refusals):
    text = f"""{H} g ({X}, float[8] roi) => (float[2, 3, 4, 6] y) <int64[4] sizes = {{2, 3, 4, 6}}>
        {{ y = Resize<mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize">(
            x, roi, , sizes) }}"""
    assert refusals(text, ResizeParts()) == ["the region that it looks at is not constant"]
