"""Rows and volumes are resampled as images with the same numbers."""

import pytest

from wpk.graph_passes.clean.resampling.resize_axes import ResizeAxes

H = '<ir_version: 10, opset_import: ["" : 20]>'


def resize(attributes: str, before: str, after: str, given: str, *, by: str = "sizes") -> str:
    kind, inputs = {"sizes": ("int64", "x, , , s"), "scales": ("float", "x, , s")}[by]
    count = len(given.split(","))
    return f"""{H} g (float[{before}] x) => (float[{after}] y) <{kind}[{count}] s = {{{given}}}>
        {{ y = Resize<{attributes}>({inputs}) }}"""


CASES = {
    "a row": (resize('mode = "linear"', "2, 3, 5", "2, 3, 12", "2, 3, 12"), 1),
    "a row of a free batch": (
        resize('mode = "nearest"', "N, 3, 5", "N, 3, 12", "1.0, 1.0, 2.5", by="scales"),
        1,
    ),
    "a volume": (
        resize('mode = "linear"', "2, 3, 4, 5, 3", "2, 3, 6, 4, 7", "2, 3, 6, 4, 7"),
        2,
    ),
    "a volume of a free batch": (
        resize(
            'mode = "linear", coordinate_transformation_mode = "align_corners"',
            "N, 3, 4, 5, 3",
            "N, 3, 8, 10, 9",
            "1.0, 1.0, 2.0, 2.0, 3.0",
            by="scales",
        ),
        2,
    ),
    "depth alone": (
        resize(
            'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"',
            "2, 3, 4, 5, 3",
            "2, 3, 7, 5, 3",
            "2, 3, 7, 5, 3",
        ),
        1,
    ),
    "height alone": (
        resize('mode = "linear"', "2, 3, 4, 5, 3", "2, 3, 4, 9, 3", "2, 3, 4, 9, 3"),
        1,
    ),
    "channels, too": (
        resize('mode = "nearest"', "2, 3, 4, 5, 3", "2, 5, 6, 4, 7", "2, 5, 6, 4, 7"),
        3,
    ),
    "nothing": (resize('mode = "linear"', "2, 3, 5", "2, 3, 5", "2, 3, 5"), 0),
}


@pytest.mark.parametrize("case", CASES)
def test_images_give_the_same_numbers(prove, case):
    text, count = CASES[case]
    proof = prove(text, ResizeAxes(), batches=(1, 3))
    assert proof.ops.count("Resize") == count
    assert all(len(n.inputs[0].shape) == 4 for n in proof.graph.nodes if n.op == "Resize")


def test_what_grows_least_comes_first(prove):
    text = resize('mode = "nearest"', "2, 3, 4, 5, 3", "2, 3, 8, 5, 9", "2, 3, 8, 5, 9")
    proof = prove(text, ResizeAxes())
    sizes = [tuple(n.outputs[0].shape) for n in proof.graph.nodes if n.op == "Resize"]
    assert sizes == [(2, 3, 8, 15), (2, 120, 1, 9)]


@pytest.mark.parametrize(
    "text",
    [
        resize('mode = "linear"', "2, 3, 4, 5", "2, 3, 8, 10", "2, 3, 8, 10"),
        resize('mode = "cubic"', "2, 3, 5", "2, 3, 12", "2, 3, 12"),
    ],
)
def test_images_and_products_stay(load, text):
    assert ResizeAxes()(load(text)).rewritten == 0


def test_batches_and_unknown_sizes_are_refused(refusals):
    text = resize('mode = "linear"', "2, 3, 5", "4, 3, 5", "4, 3, 5")
    assert refusals(text, ResizeAxes()) == ["it resamples the batch"]
    text = f"""{H} g (float[2, 3, 5] x, int64[3] s) => (float[2, 3, 7] y)
        {{ y = Resize<mode = "linear">(x, , , s) }}"""
    assert refusals(text, ResizeAxes()) == ["neither its sizes nor its scales are constant"]
