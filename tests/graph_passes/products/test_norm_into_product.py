"""Scale and shift of a normalisation go into the weights of the products that read it."""

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.graph_passes.products.norm_into_product import NormIntoProduct

H, RMS = '<ir_version: 8, opset_import: ["" : 17]>', '<ir_version: 10, opset_import: ["" : 23]>'
GIVEN = (
    "float[2,9,6] x, float[6] g, float[6] b, float[6,8] w, float[8] c, float[6,8] v, float[8,6] t"
)
CONSTANTS = "g b w c v t"
EACH = NormIntoProduct(DType.FP16)


def model(body: str, y: str = "float[2,9,8] y", *, head: str = H, constants: str = "") -> str:
    return f"{head} g ({GIVEN}) => ({y}) {constants} {{ {body} }}"


FLAT = "n = LayerNormalization(x, g, b)  r = Reshape(n, rows)"
ROWS = "<int64[2] rows = {18, 6}, int64[3] whole = {2, 9, 8}>"


@pytest.mark.parametrize(
    ("body", "ops"),
    [
        ("n = LayerNormalization(x, g, b)  p = MatMul(n, w)  y = Add(p, c)", ["MatMul", "Add"]),
        ("n = LayerNormalization(x, g, b)  p = MatMul(n, w)  y = Add(c, p)", ["MatMul", "Add"]),
        ("n = LayerNormalization(x, g, b)  y = MatMul(n, w)", ["MatMul", "Add"]),
        ("n = LayerNormalization<epsilon = 0.3>(x, g)  y = MatMul(n, w)", ["MatMul"]),
        (
            "n = LayerNormalization(x, g, b)  p = MatMul(n, w)  q = MatMul(n, v)  y = Sub(p, q)",
            ["MatMul", "MatMul", "Add", "Add", "Sub"],
        ),
        (
            f"{FLAT}  p = Gemm<alpha = 0.5, transB = 1>(r, t, c)  y = Reshape(p, whole)",
            ["Reshape", "Gemm", "Reshape"],
        ),
        (
            f"{FLAT}  p = Gemm(r, w)  y = Reshape(p, whole)",
            ["Reshape", "Gemm", "Reshape"],
        ),
    ],
)
def test_products_take_scale_and_shift(prove, body, ops):
    proof = prove(model(body, constants=ROWS), EACH, constants=CONSTANTS)
    assert sorted(proof.ops) == sorted(["LayerNormalization", *ops])
    norm = proof.node("LayerNormalization")
    assert len(norm.inputs) == 2
    assert (norm.inputs[1].values == 1).all()
    for product in (node for node in proof.graph.nodes if node.op in ("MatMul", "Gemm")):
        columns = (
            product.inputs[1].values.astype(np.float64).sum(axis=product.attrs.get("transB", 0))
        )
        np.testing.assert_allclose(columns, 0, atol=1e-5)


def test_columns_behind_an_rms_norm_keep_their_means(prove):
    text = model("n = RMSNormalization(x, g)  y = MatMul(n, w)", head=RMS)
    proof = prove(text, EACH, constants=CONSTANTS)
    assert proof.ops == ["RMSNormalization", "MatMul"]
    assert abs(proof.node("MatMul").inputs[1].values.sum(axis=0)).max() > 0.1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "n = LayerNormalization(x, g, b)  p = MatMul(n, w)  q = MatMul(p, t)  y = Add(q, n)",
            "'n' is also read by Add",
        ),
        ("n = LayerNormalization<axis = 1>(x, g, b)  y = MatMul(n, w)", "more than the last axis"),
        (
            "n = LayerNormalization(x, g, b)  p = MatMul(n, w)  q = MatMul(x, w)  y = Add(p, q)",
            "2 readers",
        ),
    ],
)
def test_refuses(refusals, body, reason):
    columns = "6] y" if "Add(q, n)" in body else "8] y"
    text = model(body, f"float[2,9,{columns}")
    assert any(reason in each for each in refusals(text, EACH, CONSTANTS))


@pytest.mark.parametrize(
    ("scale", "reason"), [(1e9, "more than fp16 reaches"), (1e-9, "too small for fp16")]
)
def test_refuses_weights_that_16_bits_hold_worse(refusals, load, scale, reason):
    text = model("n = LayerNormalization(x, g)  y = MatMul(n, w)")
    constants = CONSTANTS.replace("g ", f"g={scale} ", 1)
    assert any(reason in each for each in refusals(text, EACH, constants))
    assert NormIntoProduct(DType.BF16)(load(text, constants)).rewritten == 1


def test_refuses_few_rows(refusals):
    text = model("n = LayerNormalization(x, g)  y = MatMul(n, w)").replace("[2,9,", "[2,8,")
    assert any("16 rows" in each for each in refusals(text, EACH, CONSTANTS))


def test_products_of_32_bits_are_left_alone(load):
    graph = load(model("n = LayerNormalization(x, g, b)  y = MatMul(n, w)"), CONSTANTS)
    result = NormIntoProduct(DType.FP32)(graph)
    assert (result.rewritten, result.refusals) == (0, [])


def test_a_scale_of_ones_is_no_scale(load):
    graph = load(
        model("n = LayerNormalization(x, g)  y = MatMul(n, w)"), CONSTANTS.replace("g", "g=1", 1)
    )
    assert NormIntoProduct(DType.FP16)(graph).rewritten == 0
