"""Col2Im becomes a selection and a sum."""

import pytest

from wpk.graph_passes.clean.convolution.column_parts import ColumnParts


def columns(attributes: str, x: str, y: str, image: str, block: str) -> str:
    axes = image.count(",") + 1
    given = f"<{attributes}>" if attributes else ""
    return f"""<ir_version: 10, opset_import: ["" : 18]> g (float[{x}] x) => (float[{y}] y)
        <int64[{axes}] image = {{{image}}}, int64[{axes}] block = {{{block}}}>
        {{ y = Col2Im{given}(x, image, block) }}"""


CASES = {
    "overlapping": columns("", "N, 12, 12", "N, 2, 5, 5", "5, 5", "3, 2"),
    "side by side": columns("strides = [2, 3]", "N, 18, 6", "N, 3, 4, 9", "4, 9", "2, 3"),
    "with gaps, padding and dilation": columns(
        "strides = [2, 3], pads = [1, 0, 2, 1], dilations = [2, 1]",
        "N, 12, 6",
        "N, 2, 6, 5",
        "6, 5",
        "3, 2",
    ),
    "volumes": columns("", "2, 8, 12", "2, 1, 3, 3, 4", "3, 3, 4", "2, 2, 2"),
}


@pytest.mark.parametrize("case", CASES)
def test_pixels_are_the_sums_of_what_falls_on_them(prove, case):
    proof = prove(CASES[case], ColumnParts(), batches=(1, 3))
    assert "Col2Im" not in proof.ops
    assert ("ReduceSum" in proof.ops) == (case != "side by side")


def test_elements_are_only_moved_where_blocks_do_not_overlap(prove):
    assert prove(CASES["side by side"], ColumnParts()).ops == ["Reshape", "Gather", "Reshape"]


def test_shapes_that_are_computed_are_refused(refusals):
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[2, 6, 12] x, int64[2] image)
        => (float[2, 1, 4, 5] y) <int64[2] block = {3, 2}> { y = Col2Im(x, image, block) }"""
    assert refusals(text, ColumnParts()) == ["the shapes of image and block are not constant"]


def test_columns_of_other_blocks_are_refused(refusals):
    text = columns("", "2, 7, 12", "2, 1, 5, 5", "5, 5", "3, 2")
    (reason,) = refusals(text, ColumnParts())
    assert reason == "'x' has shape [2, 7, 12], which are no blocks of [3, 2]"
