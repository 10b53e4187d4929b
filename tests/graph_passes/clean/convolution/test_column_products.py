"""Convolutions with computed weights, or of fp64, become products with the same numbers."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.graph_passes.clean.convolution.column_products import ColumnProducts

H = '<ir_version: 10, opset_import: ["" : 20]>'
CASES = {
    "an image": f"""{H} g (float[N, 4, 6, 7] x, float[5, 4, 3, 2] w, float[5] b) => (float[N, 5, 3, 8] y)
        {{ y = Conv<strides = [2, 1], pads = [1, 1, 0, 1]>(x, w, b) }}""",
    "an image of a free batch, groups with gaps": f"""{H} g (float[N, 4, 7, 6] x, float[6, 2, 3, 2] w)
        => (float[N, 6, 3, 4] y) {{ y = Conv<group = 2, dilations = [2, 2]>(x, w) }}""",
    "a template for each channel": f"""{H} g (float[1, 6, 5, 4] x, float[6, 1, 2, 3] w) => (float[1, 6, 4, 2] y)
        {{ y = Conv<group = 6>(x, w) }}""",
    "a row": f"""{H} g (float[N, 3, 9] x, float[4, 3, 3] w, float[4] b) => (float[N, 4, 4] y)
        {{ y = Conv<strides = [2], auto_pad = "VALID">(x, w, b) }}""",
    "a pixel": f"""{H} g (float[N, 3, 4, 5] x, float[4, 3, 1, 1] w) => (float[N, 4, 4, 5] y)
        {{ y = Conv(x, w) }}""",
    "every other pixel": f"""{H} g (float[N, 3, 5, 5] x, float[4, 3, 1, 1] w) => (float[N, 4, 3, 3] y)
        {{ y = Conv<strides = [2, 2]>(x, w) }}""",
    "weights that are computed from others": f"""{H} g (float[2, 3, 5, 4] x, float[4, 1, 1, 1] s, float[4, 3, 2, 2] w)
        => (float[2, 4, 4, 3] y) {{ m = Mul(w, s)  y = Conv(x, m) }}""",
    "the same size, more in front": f"""{H} g (float[N, 3, 5, 6] x, float[4, 3, 2, 3] w) => (float[N, 4, 5, 3] y)
        {{ y = Conv<strides = [1, 2], auto_pad = "SAME_LOWER">(x, w) }}""",
    "the same size, more behind": f"""{H} g (float[N, 3, 5, 6] x, float[4, 3, 2, 3] w) => (float[N, 4, 5, 3] y)
        {{ y = Conv<strides = [1, 2], auto_pad = "SAME_UPPER">(x, w) }}""",
    "upsampling to the strides": f"""{H} g (float[N, 3, 5, 4] x, float[3, 4, 3, 3] w) => (float[N, 4, 10, 12] y)
        {{ y = ConvTranspose<strides = [2, 3], auto_pad = "SAME_UPPER">(x, w) }}""",
    "upsampling to a shape": f"""{H} g (float[N, 3, 3, 3] x, float[3, 4, 3, 3] w) => (float[N, 4, 10, 8] y)
        {{ y = ConvTranspose<strides = [3, 2], output_shape = [10, 8], output_padding = [1, 1]>(x, w) }}""",
    "upsampling": f"""{H} g (float[N, 4, 3, 4] x, float[4, 3, 3, 2] w, float[3] b) => (float[N, 3, 6, 9] y)
        {{ y = ConvTranspose<strides = [2, 2], pads = [1, 0, 1, 0], output_padding = [1, 1]>(x, w, b) }}""",
    "upsampling of groups with gaps": f"""{H} g (float[2, 4, 4, 3] x, float[4, 3, 2, 3] w) => (float[2, 6, 6, 7] y)
        {{ y = ConvTranspose<group = 2, dilations = [2, 2]>(x, w) }}""",
}


@pytest.mark.parametrize("case", CASES)
def test_products_give_the_same_numbers(prove, case):
    drawn = "w" if "m = Mul" in CASES[case] else ""
    proof = prove(CASES[case], ColumnProducts(), constants=drawn, batches=(1, 3), terms=256)
    assert "MatMul" in proof.ops
    assert not {"Conv", "ConvTranspose"} & set(proof.ops)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_of_fp64_too_with_constant_weights(load, op):
    text = f"""{H} g (double[2, 3, 5, 4] x, double[3, 3, 2, 2] w) => (double[2, 3, A, B] y) {{ y = {op}(x, w) }}"""
    text = text.replace("A, B", "4, 3" if op == "Conv" else "6, 5")
    graph = load(text, "w")
    (model, *_), rng = [onnx.parser.parse_model(text)], np.random.default_rng(3)
    weights = graph.nodes[0].inputs[1].values
    assert ColumnProducts()(graph).rewritten == 1
    x = rng.standard_normal((2, 3, 5, 4))
    (right,) = ReferenceEvaluator(model).run(None, {"x": x, "w": weights})
    (seen,) = ReferenceEvaluator(gs.export_onnx(graph)).run(None, {"x": x})
    np.testing.assert_allclose(seen, right, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "made",
    [
        "t = Transpose<perm = [1, 0, 2, 3]>(w)",
        "s = Shape(x)  f = Cast<to = 1>(s)  v = Mul(w, f)  t = Transpose<perm = [1, 0, 2, 3]>(v)",
    ],
)
def test_weights_that_only_constants_and_sizes_make_stay(load, made):
    text = f"""{H} g (float[2, 3, 5, 4] x, float[3, 4, 4, 4] w) => (float[2, 4, 2, 1] y)
        {{ {made}  y = Conv(x, t) }}"""
    assert ColumnProducts()(load(text, "w")).rewritten == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"""{H} g (float[1, 2, 3, M] x, float[2, 2, 2, 2] w) => (float[1, 2, 2, P] y) {{ y = Conv(x, w) }}""",
            "'x' has shape [1, 2, 3, 'M']: all but the batch must be known",
        ),
        (
            f"""{H} g (float[1, 2, 3, 3] x, float[K, 2, 2, 2] w) => (float[1, K, 2, 2] y) {{ y = Conv(x, w) }}""",
            "'w' has shape ['K', 2, 2, 2]: all but the batch must be known",
        ),
        (
            f"""{H} g (float[1, 2, 3, 3] x, float[2, 2, 2, 2] w) => (float[1, 2, 3, 3] y)
            {{ y = Conv<auto_pad = "SAME_UPPER", dilations = [2, 1]>(x, w) }}""",
            "padded SAME_UPPER, ONNX and ONNX Runtime disagree where its windows begin",
        ),
        (
            f"""{H} g (float[1, 2, 7, 7] x, float[2, 2, 1, 1] w) => (float[1, 2, 2, 2] y)
            {{ y = Conv<auto_pad = "SAME_LOWER", strides = [4, 4]>(x, w) }}""",
            "padded SAME_LOWER, ONNX and ONNX Runtime disagree where its windows begin",
        ),
        (
            f"""{H.replace("20", "17")} g (float[1, 2, 3, 3] x, float[2, 2, 2, 2] w) => (float[1, 2, 4, 4] y)
            {{ y = ConvTranspose(x, w) }}""",
            "Col2Im is no operator of opset 17",
        ),
    ],
)
def test_what_it_does_not_write_is_refused(refusals, text, reason):
    assert refusals(text, ColumnProducts()) == [reason]
