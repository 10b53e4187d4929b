"""Products of quantised tensors become products of bytes: the numbers are ONNX Runtime's, and what stays says why."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import onnxruntime
import pytest

from wpk.graph_passes import infer_shapes
from wpk.graph_passes.clean.quantisation.byte_products import ByteProducts
from wpk.graph_passes.clean.quantisation.unsigned_bytes import UnsignedBytes
from wpk.graph_passes.core import GraphPass, PassResult
from wpk.graph_passes.core.byte_products import multiplies_bytes
from wpk.graph_passes.fold.constant_folding import ConstantFolding
from wpk.graph_passes.movement.chains.idle_quantisation import IdleQuantisation

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_NUMBERS = """float s = {0.05}, int8 z = {7}, float t = {0.01}, int8 none = {0}, int8 least = {-128},
    float[3] each = {0.01, 0.02, 0.005}, int8[3] nones = {0, 0, 0}, uint8 middle = {128}, float[3] bias = {1, -2, 3}"""
_W = ", ".join(str(37 * n % 256 - 128) for n in range(54))
_UNSIGNED = ", ".join(str(37 * n % 256) for n in range(12))


def graph_of(text: str) -> gs.Graph:
    model = onnx.parser.parse_model(f"{_H} g {text}")
    onnx.checker.check_model(model)
    graph = gs.import_onnx(model)
    for number, node in enumerate(graph.nodes):
        node.name = f"n{number}"
    infer_shapes(graph)
    return graph


def run(graph: gs.Graph, x: np.ndarray) -> np.ndarray:
    model = gs.export_onnx(graph)
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    result: np.ndarray = onnxruntime.InferenceSession(model.SerializeToString(), options).run(
        None, {"x": x}
    )[0]
    return result


def apply(graph: gs.Graph, each: GraphPass) -> PassResult:
    result = each(graph)
    assert each(graph).rewritten == 0
    graph.cleanup().toposort()
    return result


def quantised(
    product: str,
    weights: str,
    x: str = "float[2, 2, 5, 5]",
    zero: str = "z",
    y: str = "float[5, 3]",
) -> str:
    return f"""({x} x) => ({y} y) <{_NUMBERS}, {weights}> {{
        q = QuantizeLinear (x, s, {zero})  a = DequantizeLinear (q, s, {zero})  {product} }}"""


CONV = f"int8[3, 2, 3, 3] w = {{{_W}}}"
MATRIX = "int8[4, 3] w = {" + ", ".join(_W.split(", ")[:12]) + "}"
CASES = {
    "a zero point, scales of filters, a bias": quantised(
        "b = DequantizeLinear <axis = 0> (w, each, nones)  y = Conv (a, b, bias)",
        CONV,
        y="float[2, 3, 3, 3]",
    ),
    "padding": quantised(
        "b = DequantizeLinear (w, t, none)  y = Conv <pads = [1, 1, 1, 1]> (a, b)",
        CONV,
        zero="none",
        y="float[2, 3, 5, 5]",
    ),
    "scales of columns": quantised(
        "b = DequantizeLinear <axis = 1> (w, each, nones)  y = MatMul (a, b)", MATRIX, "float[5, 4]"
    ),
    "Gemm": quantised(
        "b = DequantizeLinear <axis = 1> (w, each, nones)  y = Gemm <alpha = 0.5> (a, b, bias)",
        MATRIX,
        "float[5, 4]",
    ),
    "unsigned weights": quantised(
        "b = DequantizeLinear (w, t, middle)  y = MatMul (a, b)",
        f"uint8[4, 3] w = {{{_UNSIGNED}}}",
        "float[5, 4]",
    ),
    "both computed": quantised(
        "p = Transpose <perm = [1, 0]> (x)  r = QuantizeLinear (p, t, none)"
        "  b = DequantizeLinear (r, t, none)  y = MatMul (a, b)",
        MATRIX,
        "float[5, 4]",
        zero="none",
        y="float[5, 5]",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_products_are_of_bytes_and_right(case: str) -> None:
    before, after = graph_of(CASES[case]), graph_of(CASES[case])
    assert apply(after, ByteProducts()).rewritten == 1
    apply(after, ConstantFolding())
    (product,) = [node for node in after.nodes if node.op in ("Conv", "MatMul", "Gemm")]
    assert multiplies_bytes(product)
    x = np.random.default_rng(2).normal(0, 2, before.inputs[0].shape).astype(np.float32)
    right, seen = run(before, x), run(after, x)
    np.testing.assert_allclose(seen, right, rtol=0, atol=2e-5 * np.abs(right).max())


REFUSED = {
    "which stand for -7 steps of it": quantised(
        "b = DequantizeLinear (w, t, none)  y = Conv <pads = [1, 1, 1, 1]> (a, b)",
        CONV,
        y="float[2, 3, 5, 5]",
    ),
    "further from their zero point than int8 reaches": quantised(
        "b = DequantizeLinear (w, t, least)  y = MatMul (a, b)", MATRIX, "float[5, 4]"
    ),
    "scales that are not those of output channels": quantised(
        "b = DequantizeLinear <axis = 0> (w, each, nones)  y = MatMul (a, b)",
        "int8[3, 4] w = {" + ", ".join(_W.split(", ")[:12]) + "}",
        "float[5, 3]",
        y="float[5, 4]",
    ),
    "both operands are computed, and have zero points": quantised(
        "p = Transpose <perm = [1, 0]> (x)  r = QuantizeLinear (p, t, none)"
        "  b = DequantizeLinear (r, t, none)  y = MatMul (a, b)",
        MATRIX,
        "float[5, 4]",
        y="float[5, 5]",
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_no_product_of_bytes_stays_and_says_why(reason: str) -> None:
    result = apply(graph_of(REFUSED[reason]), ByteProducts())
    assert result.rewritten == 0
    assert [each.reason for each in result.refusals if reason in each.reason]


def test_the_least_zero_point_is_that_of_unsigned_bytes() -> None:
    text = f"""(float[3, 4] x) => (float[3, 4] y) <{_NUMBERS}> {{
        q = QuantizeLinear (x, s, least)  y = DequantizeLinear (q, s, least) }}"""
    before, after = graph_of(text), graph_of(text)
    assert apply(after, UnsignedBytes()).rewritten == 1
    assert after.nodes[0].outputs[0].dtype == np.uint8
    x = np.random.default_rng(2).normal(0, 9, (3, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(after, x), run(before, x))


@pytest.mark.parametrize(("scale", "count"), [("s", 1), ("t", 0)])
def test_what_moves_is_not_quantised_again_with_the_same_numbers(scale: str, count: int) -> None:
    text = f"""(float[3, 4] x) => (float[4, 3] y) <{_NUMBERS}> {{
        q = QuantizeLinear (x, s, z)  a = DequantizeLinear (q, s, z)  m = Transpose <perm = [1, 0]> (a)
        p = QuantizeLinear (m, {scale}, z)  y = DequantizeLinear (p, {scale}, z) }}"""
    before, after = graph_of(text), graph_of(text)
    assert apply(after, IdleQuantisation()).rewritten == count
    assert [node.op for node in after.nodes].count("QuantizeLinear") == 2 - count
    x = np.random.default_rng(2).normal(0, 9, (3, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(after, x), run(before, x))
