"""Convolutions of patches that do not overlap become products."""

import pytest

from wpk.graph_passes.core.sites import every_site
from wpk.graph_passes.products.patch_products import OtherPatchProducts, PatchProducts

H = '<ir_version: 8, opset_import: ["" : 17]>'
TO_ROWS = ["Reshape", "Transpose", "Reshape", "MatMul"]
FROM_ROWS = ["Reshape", "Transpose", "MatMul"]


def _picture(window: str, strides: str, weights: str, image: str = "1, 3, 12, 15") -> str:
    return f"""{H} g (float[{image}] x, float[5, {weights}] w, float[5] b) => (float[b, 5, p, q] y)
        {{ y = Conv<kernel_shape = {window}, strides = {strides}>(x, w, b) }}"""


def chosen() -> OtherPatchProducts:
    rule = OtherPatchProducts()
    rule.changed = {every_site(rule.name)}
    return rule


def test_patches_of_a_picture_are_the_rows_of_a_product(prove):
    text = _picture("[6, 5]", "[6, 5]", "3, 6, 5")
    proof = prove(text, PatchProducts(), constants="w b", terms=90)
    assert proof.ops == [*TO_ROWS, "Add", "Transpose", "Reshape"]
    assert proof.node("MatMul").inputs[1].shape == (90, 5)


def test_large_patches_of_several_pictures_are_the_rows_of_a_product(prove):
    text = _picture("[8, 11]", "[8, 11]", "3, 8, 11", "n, 3, 16, 33")
    proof = prove(text, PatchProducts(), constants="w b", batches=(1, 3), terms=264)
    assert proof.ops == [*TO_ROWS, "Add", "Transpose", "Reshape"]


def test_a_row_of_samples_has_patches_too(prove):
    text = f"""{H} g (float[n, 1, 192] x, float[7, 1, 64] w) => (float[n, 7, 3] y)
        {{ y = Conv<strides = [64]>(x, w) }}"""
    proof = prove(text, PatchProducts(), constants="w", batches=(1, 2), terms=64)
    assert proof.ops == [*TO_ROWS, "Transpose", "Reshape"]


@pytest.mark.parametrize("bias", ["", ", b"])
def test_pixels_become_the_patches_of_a_larger_image(prove, bias):
    text = f"""{H} g (float[n, 64, 3, 5] x, float[64, 7, 2, 3] w, float[7] b) => (float[n, 7, 6, 15] y)
        {{ y = ConvTranspose<strides = [2, 3]>(x, w{bias}) }}"""
    proof = prove(text, PatchProducts(), constants="w b", batches=(1, 3))
    added = ["Add"] if bias else []
    assert proof.ops == [*FROM_ROWS, *added, "Reshape", "Transpose", "Reshape"]


def test_short_sums_whole_pixels_and_several_pictures_become_products_where_that_is_chosen(
    prove, load
):
    for window, channels, batch in (("2, 3", 3, "1"), ("2, 3", 16, "1"), ("4, 9", 3, "n")):
        weights, image = f"{channels}, {window}", f"{batch}, {channels}, 4, 9"
        text = _picture(f"[{window}]", f"[{window}]", weights, image)
        usually = OtherPatchProducts()(load(text, "w b"))
        assert (usually.rewritten, len(usually.sites)) == (0, 1)
        assert PatchProducts()(load(text, "w b")).sites == []
        prove(text, chosen(), constants="w b", batches=(3,), terms=108)


def test_the_usual_ones_can_be_taken_back(load):
    rule = PatchProducts()
    rule.changed = {every_site(rule.name)}
    result = rule(load(_picture("[6, 5]", "[6, 5]", "3, 6, 5"), "w b"))
    assert result.rewritten == 0
    assert result.refusals[0].reason.startswith("taken back: a convolution of patches")


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ("strides = [6, 5], pads = [0, 0, 6, 5]", "pads"),
        ("strides = [6, 5], auto_pad = \"SAME_UPPER\"", "pads"),
        ("strides = [6, 5], dilations = [2, 1]", "is dilated"),
    ],
)  # fmt: skip
def test_windows_that_are_no_patches_are_refused(refusals, attributes, reason):
    text = _picture("[6, 5]", "[6, 5]", "3, 6, 5").replace("strides = [6, 5]", attributes)
    (seen,) = refusals(text, PatchProducts(), "w b")
    assert reason in seen


def test_groups_padded_outputs_and_ragged_images_are_refused(refusals):
    grouped = f"""{H} g (float[1, 6, 12, 15] x, float[4, 3, 6, 5] w) => (float[1, 4, 2, 3] y)
        {{ y = Conv<strides = [6, 5], group = 2>(x, w) }}"""
    padded = f"""{H} g (float[1, 64, 3, 5] x, float[64, 7, 2, 2] w) => (float[1, 7, 7, 10] y)
        {{ y = ConvTranspose<strides = [2, 2], output_padding = [1, 0]>(x, w) }}"""
    ragged = _picture("[6, 5]", "[6, 5]", "3, 6, 5", "1, 3, 13, 15")
    for text, reason in (
        (grouped, "has groups of channels"),
        (padded, "pads its output"),
        (ragged, "an image of [13, 15] is no whole number of patches of [6, 5]"),
    ):
        (seen,) = refusals(text, PatchProducts(), "w b" if "] b)" in text else "w")
        assert reason in seen


def test_overlapping_windows_are_not_looked_at(refusals):
    assert refusals(_picture("[6, 5]", "[3, 5]", "3, 6, 5"), PatchProducts(), "w b") == []
