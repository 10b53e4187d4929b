"""Nodes are evaluated in float64: their inputs, attributes, constants and subgraphs."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from wpk.checks.float64_nodes import NodeEvaluator, cast_type, widened
from wpk.checks.runtime_nodes import RuntimeEvaluator
from wpk.dtypes import DType

OPSETS = {"": 18}


def node(text: str) -> onnx.NodeProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g (float x) => (float y) {{ {text} }}'
    )
    return model.graph.node[0]


def evaluated(text: str, *arrays: Any, narrows: bool = False) -> np.ndarray:
    (y,) = NodeEvaluator(node(text), OPSETS, narrows=narrows)(arrays)
    return y


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_floating_point_is_widened(dtype: Any) -> None:
    x = np.array([0.1, 3.0], dtype)
    wide = widened(x)
    assert wide.dtype == np.float64
    assert wide.tolist() == [float(each) for each in x]


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint8, np.bool_])
def test_anything_else_is_the_array_itself(dtype: Any) -> None:
    x = np.array([0, 1], dtype)
    assert widened(x) is x


def test_an_attribute_is_the_fp32_number_in_float64() -> None:
    y = evaluated("y = LeakyRelu<alpha = 0.1>(x)", np.array([-3.0, 5.0]))
    assert y.tolist() == [-3.0 * float(np.float32(0.1)), 5.0]
    y = evaluated("y = Gemm<alpha = 0.1, transB = 1>(x, w)", *(np.full((1, 2), 3.0),) * 2)
    assert y.item() == pytest.approx(18 * float(np.float32(0.1)), rel=1e-15)


def test_operators_compute_with_attributes_in_float64() -> None:
    """A third of alpha is no number of fp32."""
    text = "y = LRN<alpha = 1.0, beta = 1.0, bias = 1.0, size = 3>(x)"
    y = evaluated(text, np.ones((1, 1, 1, 1)))
    assert y.item() == pytest.approx(0.75, rel=1e-15)


CAST = np.array([1.0001, -2.0003])


@pytest.mark.parametrize(
    ("to", "name", "rounded"),
    [
        (TensorProto.FLOAT16, DType.FP16, CAST.astype(np.float16)),
        (TensorProto.BFLOAT16, DType.BF16, CAST.astype(ml_dtypes.bfloat16)),
        (TensorProto.FLOAT, None, CAST),
        (TensorProto.DOUBLE, None, CAST),
        (TensorProto.INT64, None, np.array([1, -2])),
    ],
)
def test_a_cast_narrows_to_16_bits_where_it_should(
    to: int, name: DType | None, rounded: np.ndarray
) -> None:
    text = f"y = Cast<to = {to}>(x)"
    assert cast_type(node(text)) is name
    y = evaluated(text, CAST, narrows=True)
    assert y.tolist() == [float(each) for each in rounded]
    exact = rounded if to == TensorProto.INT64 else CAST
    (y,) = NodeEvaluator(node(text), OPSETS)([CAST])
    np.testing.assert_array_equal(y, exact, strict=True)


def test_only_casts_narrow() -> None:
    assert cast_type(node("y = Neg(x)")) is None
    assert evaluated("y = Neg(x)", CAST, narrows=True).tolist() == (-CAST).tolist()


def test_a_reinterpretation_of_bits_is_no_cast() -> None:
    cast = onnx.helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.FLOAT)
    (y,) = NodeEvaluator(cast, {"": 27})([np.array([0x3F800000, 0x40000000], np.int32)])
    np.testing.assert_array_equal(y, np.array([1.0, 2.0]), strict=True)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_a_constant_is_widened(dtype: Any) -> None:
    value = np.array([0.1, 7.0], dtype)
    constant = onnx.helper.make_node("Constant", [], ["y"], value=numpy_helper.from_array(value))
    (y,) = NodeEvaluator(constant, OPSETS)([])
    np.testing.assert_array_equal(y, value.astype(np.float64), strict=True)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_])
def test_another_constant_stays(dtype: Any) -> None:
    value = np.array([1, 0, 1], dtype)
    constant = onnx.helper.make_node("Constant", [], ["y"], value=numpy_helper.from_array(value))
    (y,) = NodeEvaluator(constant, OPSETS)([])
    np.testing.assert_array_equal(y, value, strict=True)


def test_the_node_that_is_given_stays_as_it_is() -> None:
    cast = node("y = Cast<to = 10>(x)")
    before = cast.SerializeToString()
    wide = NodeEvaluator(cast, OPSETS).node
    assert cast.SerializeToString() == before
    assert wide.attribute[0].i == TensorProto.DOUBLE


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_is_float64_throughout(condition: bool) -> None:
    """Its initializers, its casts, its constants, and what it reads from outside."""
    choice = node(
        """y = If(c) <
            then_branch = g () => (float a) <float[2] w = {0.1, 3}, int64[1] n = {2}> {
                t = Cast<to = 10>(x) p = Cast<to = 1>(t) q = Mul(w, w) s = Mul(p, q)
                m = Cast<to = 1>(n) a = Add(s, m) },
            else_branch = h () => (float b) {
                k = Constant<value = float[1] {0.1}>() l = Mul(k, k) b = Mul(x, l) }
        >"""
    )
    evaluate = NodeEvaluator(choice, OPSETS)
    assert evaluate.inputs == ["c", "x"]
    (y,) = evaluate([np.array(condition), CAST])
    w = np.array([0.1, 3], np.float32).astype(np.float64)
    expected = CAST * (w * w) + 2 if condition else CAST * (w[0] * w[0])
    np.testing.assert_array_equal(y, expected, strict=True)


def test_missing_inputs_and_outputs() -> None:
    y = evaluated('y = Clip(x, "", h)', np.array([1.0, 9.0]), None, np.array(2.0))
    assert y.tolist() == [1.0, 2.0]
    largest = node('"", i = TopK(x, k)')
    evaluate = NodeEvaluator(largest, OPSETS)
    (indices,) = evaluate([np.array([1.0, 9.0, 4.0]), np.array([2])])
    np.testing.assert_array_equal(indices, np.array([1, 2]), strict=True)
    assert evaluate.inputs == ["x", "k"]
    assert evaluate.opset == 18


@pytest.mark.parametrize(
    "evaluator", [lambda of: NodeEvaluator(of, OPSETS), lambda of: RuntimeEvaluator(of, OPSETS[""])]
)
def test_an_input_that_is_read_twice_may_be_two_arrays(evaluator: Any) -> None:
    """Bounds ask what a node gives of other arrays than the tensor that it reads in both places."""
    evaluate = evaluator(node("y = MatMul(x, x)"))
    assert evaluate.inputs == ["x", "x"]
    (y,) = evaluate([np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])])
    assert y.tolist() == [[11.0]]
