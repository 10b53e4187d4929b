"""Fourier transforms of known lengths become products."""

import numpy as np
import pytest

from wpk.graph_passes.clean.definitions.fourier_products import FourierProducts


def _text(x, y, attributes="", inputs="x", opset=20, more=""):
    head = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    return f"""{head} g (float[{x}] x) => (float[{y}] y) <int64 axis = {{1}}, int64 long = {{12}}, int64 six = {{6}}>
        {{ {more} y = DFT{attributes}({inputs}) }}"""


CASES = {
    "real numbers": _text("N, 6, 1", "N, 6, 2"),
    "complex numbers": _text("N, 6, 2", "N, 6, 2"),
    "the inverse": _text("N, 5, 2", "N, 5, 2", "<inverse = 1>"),
    "the inverse of real numbers": _text("2, 5, 1", "2, 5, 2", "<inverse = 1>"),
    "another axis": _text("N, 6, 5, 2", "N, 6, 5, 2", inputs="x, , axis"),
    "another axis of an older opset": _text("N, 6, 5, 2", "N, 6, 5, 2", "<axis = 1>", opset=17),
    "the default axis of an older opset": _text("2, 6, 5, 2", "2, 6, 5, 2", opset=18),
    "one side": _text("N, 7, 1", "N, 4, 2", "<onesided = 1>"),
    "one side of an even length": _text("N, 6, 1", "N, 4, 2", "<onesided = 1>"),
    "a length that is that of the axis": _text("N, 6, 1", "N, 6, 2", inputs="x, six"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_product_gives_the_same_numbers(prove, case):
    proof = prove(CASES[case], FourierProducts(), batches=(1, 3), terms=64)
    assert "DFT" not in proof.ops


def test_two_transforms_are_those_of_numpy(load, run_model, export):
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float[2, 6, 8, 1] x) => (float[2, 6, 8, 2] y)
        <int64 inner = {2}, int64 outer = {1}> { t = DFT(x, , inner)  y = DFT(t, , outer) }"""
    graph = load(text)
    assert FourierProducts()(graph).rewritten == 2
    x = np.random.default_rng(0).standard_normal((2, 6, 8, 1)).astype(np.float32)
    (found,) = run_model(export(graph), {"x": x})
    right = np.fft.fft2(x[..., 0])
    np.testing.assert_allclose(found, np.stack([right.real, right.imag], -1), atol=1e-4)


@pytest.mark.parametrize(("text", "reason"), [
    (_text("N, 6, 1", "N, 12, 2", inputs="x, long"), "its length is not that of the axis"),
    (_text("2, N, 1", "2, N, 2"), "all but the batch must be known"),
    (_text("N, 6, 2", "N, 4, 2", "<onesided = 1>"), "half of the numbers of a complex signal"),
    (_text("N, 4096, 1", "N, 4096, 2"), "it has 4096 elements of float32"),
    (
        _text("6, 1", "6, 2", inputs="x, , axis").replace("{1}", "{0}").replace("[6, 1]", "[N, 1]"),
        "axis 0 of 'x' is free",
    ),
])  # fmt: skip
def test_others_stay(refusals, text, reason):
    (found,) = refusals(text, FourierProducts())
    assert reason in found
