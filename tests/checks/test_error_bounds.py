"""Error bounds: they hold for fp32 arithmetic, and they are not generous."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.checks.bounded import FLOAT64, Ball, Call, rounding
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator
from wpk.dtypes import DType

OPSETS = {"": 24}
U = 2.0**-24


def node(text: str) -> onnx.NodeProto:
    """The one node of a graph's body, e.g. ``y = Relu(x)``."""
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 24]> g (float x) => (float y) {{ {text} }}'
    )
    return model.graph.node[0]


def bounded(text: str, inputs: list[Ball], u_mul: float = U) -> Ball:
    """The float64 result of a node with its bound."""
    evaluate = NodeEvaluator(node(text), OPSETS)
    outputs = evaluate([each.value for each in inputs])
    return Ball(outputs[0], bound_error(Call(evaluate, inputs, outputs, u_mul)))


def in_fp32(text: str, arrays: list[np.ndarray]) -> np.ndarray:
    """The node computed in fp32."""
    proto = node(text)
    names = list(dict.fromkeys(proto.input))
    undefined = onnx.TypeProto()
    graph = onnx.helper.make_graph(
        [proto],
        "g",
        [onnx.helper.make_value_info(n, undefined) for n in names],
        [onnx.helper.make_value_info(proto.output[0], undefined)],
    )
    feed = dict(zip(names, arrays, strict=True))
    return np.asarray(ReferenceEvaluator(graph, opsets=OPSETS).run(None, feed)[0])


CASES = [
    ("y = Conv <pads = [1, 1, 1, 1]> (x, w, b)", [(2, 5, 9, 9), (4, 5, 3, 3), (4,)]),
    ("y = MatMul(x, w)", [(7, 300), (300, 5)]),
    ("y = Gemm <alpha = -0.5, beta = 2.0> (x, w, b)", [(7, 30), (30, 5), (5,)]),
    ("y = Softmax <axis = 1> (x)", [(9, 200)]),
    ("y = LogSoftmax <axis = 1> (x)", [(9, 200)]),
    ("y = LayerNormalization <axis = 1> (x, w, b)", [(9, 200), (200,), (200,)]),
    ("y = GlobalAveragePool(x)", [(2, 5, 17, 13)]),
    ("y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)", [(2, 5, 17, 13)]),
    ("y = ReduceL2 <keepdims = 0> (x)", [(9, 200)]),
    ("y = Gelu(x)", [(9, 200)]),
    ("y = Erf(x)", [(9, 200)]),
    ("y = Mul(x, w)", [(9, 200), (9, 200)]),
    ("y = Div(x, w)", [(9, 200), (9, 200)]),
    ("y = Sigmoid(x)", [(9, 200)]),
]


@pytest.mark.parametrize(("text", "shapes"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_fp32_arithmetic_stays_within_the_bound(
    text: str, shapes: list[tuple[int, ...]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    result = bounded(text, [Ball(a.astype(np.float64)) for a in arrays])
    assert result.error is not None
    error = np.abs(in_fp32(text, arrays) - result.value)
    allowed = result.error + rounding(result.value, DType.FP32)
    assert (error <= allowed).all()


@pytest.mark.parametrize(("text", "shapes"), CASES)
def test_an_operand_rounded_to_bf16_breaks_the_bound(
    text: str, shapes: list[tuple[int, ...]]
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    result = bounded(text, [Ball(a.astype(np.float64)) for a in arrays])
    coarse = arrays[0].astype(ml_dtypes.bfloat16).astype(np.float32)
    error = np.abs(in_fp32(text, [coarse, *arrays[1:]]) - result.value)
    assert result.error is not None
    assert (error > result.error + rounding(result.value, DType.FP32)).mean() > 0.3


def test_a_product_has_the_design_s_bound() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 50)), rng.standard_normal((50, 3))
    result = bounded("y = MatMul(x, w)", [Ball(x), Ball(w)], u_mul=2.0**-11)
    magnitudes = np.abs(x) @ np.abs(w)
    expected = (4 * (2.0**-11 + U * np.sqrt(50)) + 50 / 8 * 2 * U) * magnitudes
    np.testing.assert_allclose(result.error, expected, rtol=1e-12)


def test_errors_pass_through_a_monotone_function() -> None:
    x = np.array([-1.0, 0.05, 2.0])
    error = np.full(3, 0.1)
    result = bounded("y = Relu(x)", [Ball(x, error)])
    assert result.error is not None
    np.testing.assert_allclose(result.error, [0.0, 0.1, 0.1], atol=1e-15)


def test_errors_follow_a_transpose() -> None:
    x, error = np.zeros((2, 3)), np.arange(6.0).reshape(2, 3)
    result = bounded("y = Transpose(x)", [Ball(x, error)])
    assert result.error is not None
    assert (result.error == error.T).all()


def test_movement_is_exact() -> None:
    x = np.arange(6.0).reshape(2, 3)
    result = bounded("y = Transpose(x)", [Ball(x)])
    assert result.error is None


def test_a_cast_to_fp16_costs_its_rounding() -> None:
    x = np.array([1.0, 3.0])
    result = bounded("y = Cast <to = 10> (x)", [Ball(x)])
    assert result.error is not None
    np.testing.assert_allclose(result.error, 2.0**-11 * x + 2.0**-25)
    assert (result.value == x).all()


def test_a_masked_softmax_has_a_finite_bound() -> None:
    x = np.array([[0.0, 1.0, -3.4e38], [0.0, -np.inf, 1.0]])
    result = bounded("y = Softmax <axis = 1> (x)", [Ball(x)])
    assert result.error is not None
    assert np.isfinite(result.error).all()
    assert result.error.max() < 1e-5


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_errors_of_masked_elements_move_no_others(op: str) -> None:
    x = np.array([[0.0, 1.0, -3.4e38], [0.0, -3.4e38, 1.0]])
    error = np.where(x < -1e30, 2e31, 1e-6)
    result = bounded(f"y = {op} <axis = 1> (x)", [Ball(x, error)])
    assert result.error is not None
    assert (result.error[x > -1e30] < 1e-5).all()
    assert (result.error[x < -1e30] < (1e-30 if op == "Softmax" else 1e33)).all()


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_errors_move_a_softmax_no_further_than_its_bound(op: str) -> None:
    rng = np.random.default_rng(0)
    x, error = rng.standard_normal((40, 5)) * 3, rng.uniform(0, 0.5, (40, 5))
    text = f"y = {op} <axis = 1> (x)"
    result = bounded(text, [Ball(x, error)])
    assert result.error is not None
    most = np.zeros(x.shape)
    for signs in np.ndindex(*(2,) * 5):
        moved = bounded(text, [Ball(x + error * (2 * np.array(signs) - 1))]).value
        most = np.maximum(most, np.abs(moved - result.value))
    assert (most <= result.error).all()
    if op == "Softmax":
        assert (result.error <= most + 2e-5).all()
    else:
        assert (result.error <= error + error.max(axis=1, keepdims=True) + 2e-5).all()


@pytest.mark.parametrize("size", [1.0, 20.0, 200.0])
def test_errors_that_exchange_the_largest_move_a_softmax_no_further_than_its_bound(
    size: float,
) -> None:
    rng = np.random.default_rng(1)
    x, error = rng.standard_normal((60, 4)) * size, rng.uniform(0, 2 * size, (60, 4))
    x[0], error[0] = [0, -50, -60, -70], size
    text = "y = Softmax <axis = 1> (x)"
    result = bounded(text, [Ball(x, error)])
    assert result.error is not None
    for signs in np.ndindex(*(2,) * 4):
        moved = bounded(text, [Ball(x + error * (2 * np.array(signs) - 1))]).value
        assert (np.abs(moved - result.value) <= result.error * (1 + 1e-12)).all()


def test_a_comparison_near_its_threshold_may_flip() -> None:
    x = np.array([0.0, 1.0])
    inputs = [Ball(x, np.full(2, 0.01)), Ball(np.array([0.005, 0.005]))]
    evaluate = NodeEvaluator(node("y = Less(x, w)"), OPSETS)
    outputs = evaluate([each.value for each in inputs])
    error = bound_error(Call(evaluate, inputs, outputs, U))
    assert error is not None
    assert error.tolist() == [1.0, 0.0]


X, W = np.array([[-1.5], [0.75]]), np.array([0.5, -2.0, 3.0])


@pytest.mark.parametrize(
    ("text", "inputs", "size"),
    [
        *(
            (f"y = {op}(x, w)", (X, W), lambda y, x: abs(y))
            for op in ("Add", "Sub", "Mul", "PRelu")
        ),
        ("y = Sum(x, w, x)", (X, W, X), lambda y, x: 2 * abs(x) + abs(W)),
        *((f"y = {op}(x, w)", (X, W), lambda y, x: 8 * abs(y)) for op in ("Div", "Mod")),
        ("y = Pow(x, w)", (X**2, W), lambda y, x: 8 * abs(y)),
        *((f"y = {op}(x)", (X**2,), lambda y, x: 8 * abs(y)) for op in ("Sqrt", "Log")),
        ("y = Swish(x)", (X,), lambda y, x: 8 * (abs(y) + abs(x))),
    ],
)
def test_functions_err_by_roundings_of_their_size(
    text: str, inputs: tuple[np.ndarray, ...], size: Callable[..., np.ndarray]
) -> None:
    if "Mod(" in text:
        text = text.replace("(x", " <fmod = 1> (x")
    result = bounded(text, [Ball(each) for each in inputs])
    np.testing.assert_allclose(result.error, U * size(result.value, inputs[0]), rtol=1e-12)


def test_both_errors_remain_where_one_limits_the_other_in_another_form() -> None:
    x = Ball(np.array([[-1.0], [0.05], [2.0]]), np.array([[0.1], [0.1], [0.2]]))
    y = Ball(np.array([0.0, 1.5]), np.array([0.0, 0.3]))
    evaluate = NodeEvaluator(node("y = Max(x, w)"), OPSETS)
    outputs = evaluate([x.value, y.value])
    forms = replace(FLOAT64, other_forms=True)
    error = bound_error(Call(evaluate, [x, y], outputs, U, forms))
    np.testing.assert_allclose(error, [[0.1, 0.3], [0.1, 0.3], [0.2, 0.3]], rtol=1e-12)


def test_the_margin_of_a_padding_errs_as_its_value_does() -> None:
    x, pads = Ball(X, np.array([[0.1], [0.2]])), Ball(np.array([0, 1, 0, 0]))
    padded = bounded("y = Pad(x, w, b)", [x, pads, Ball(np.array(5.0), np.array(0.3))])
    assert padded.error is not None
    assert padded.error.tolist() == [[0.3, 0.1], [0.3, 0.2]]
    exact = bounded("y = Pad(x, w, b)", [Ball(X), pads, Ball(np.array(5.0), np.array(0.3))])
    assert exact.error is not None
    assert exact.error.tolist() == [[0.3, 0.0], [0.3, 0.0]]
    plain = bounded("y = Pad(x, w)", [x, pads])
    assert plain.error is not None
    assert plain.error.tolist() == [[0.0, 0.1], [0.0, 0.2]]


class Counted(NodeEvaluator):
    """Counts how often it is evaluated."""

    count = 0

    def __call__(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        self.count += 1
        return super().__call__(arrays)


def test_what_no_kernel_computes_is_tried_four_times_upwards_and_downwards() -> None:
    x, error = np.array([-1.0, -5.0, -3.0]), np.array([0.5, 0.0, 0.25])
    evaluate = Counted(node("y = Celu(x)"), OPSETS)
    found = bound_error(Call(evaluate, [Ball(x, error)], [np.expm1(x)], U))
    most = np.expm1(-0.5 + 8 * U) - np.expm1(-1.0)  # downwards it is less
    np.testing.assert_allclose(found, 4 * most + 8 * U * np.abs(np.expm1(x)), rtol=1e-9)
    assert evaluate.count == 4
