"""Quantisations in float64, and how far a kernel's results may lie from them."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

from wpk.checks.bounded import Ball, Call, Floats
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import Array, NodeEvaluator

NODE = onnx.helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
U = 2.0**-24


def evaluated(x: Array) -> Sequence[Array]:
    return NodeEvaluator(NODE, {"": 17})([np.asarray(x, np.float64)])


def bounds(x: Ball) -> list[Floats | None]:
    evaluate = NodeEvaluator(NODE, {"": 17})
    outputs = evaluate([x.value])
    return [bound_error(Call(evaluate, [x], outputs, U, place=place)) for place in range(3)]


@pytest.mark.parametrize("low", [-3.0, -0.01, 0.5])
def test_the_reference_is_onnx_runtime_but_for_ties(low: float) -> None:
    x = np.random.default_rng(0).uniform(low, 2, (40, 50)).astype(np.float32)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[40, 50] x) => (uint8[40, 50] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear (x) }"""
    session = onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
    y, s, z = session.run(None, {"x": x})
    y_exact, s_exact, z_exact = evaluated(x)
    np.testing.assert_allclose(s, s_exact, rtol=2 * U)
    assert z == z_exact
    allowed = bounds(Ball(x.astype(np.float64)))[0]
    assert (
        np.abs(y.astype(int) - y_exact.astype(int)) <= (0 if allowed is None else allowed)
    ).all()


def test_nothing_but_zeros_have_a_scale_of_one() -> None:
    y, s, z = evaluated(np.zeros((2, 3)))
    assert (y.tolist(), float(s), int(z)) == ([[0] * 3] * 2, 1.0, 0)


def test_what_is_decided_has_no_error_but_the_scales() -> None:
    y, s, z = bounds(Ball(np.array([-1.0, 0.3, 2.0])))  # the zero point is 85
    assert z is None
    assert s is not None
    assert 0 < float(s) <= 10 * U * 3 / 255
    assert y is None or not y[[0, 2]].any()


def test_a_byte_and_a_zero_point_on_a_tie_may_be_either() -> None:
    x = Ball(np.array([-1.0, 0.25, 1.0]))  # the zero point is 127.5
    y, _, z = bounds(x)
    assert z is not None
    assert float(z) == 1.0
    assert y is not None
    assert y[1] == 1.0


def test_bounds_hold_what_errors_of_the_tensor_do() -> None:
    rng = np.random.default_rng(1)
    x, error = rng.standard_normal((6, 7)), rng.uniform(0, 0.02, (6, 7))
    allowed = [np.zeros(()) if each is None else each for each in bounds(Ball(x, error))]
    exact = evaluated(x)
    seen = np.zeros(3)
    for _ in range(200):
        moved = evaluated(x + rng.choice((-1.0, 0.0, 1.0), x.shape) * error)
        for place, (one, other, most) in enumerate(zip(moved, exact, allowed, strict=True)):
            distance = np.abs(one.astype(np.float64) - other.astype(np.float64))
            assert (distance <= most).all()
            seen[place] = max(seen[place], distance.max())
    assert (seen > 0).all()
    assert allowed[0].max() <= 4  # bytes of 5 / 255 that 0.02 and the moves of the limits meet


EIGHT_BITS = {17: ml_dtypes.float8_e4m3fn, 19: ml_dtypes.float8_e5m2}


def stored(kind: int, x: Ball, scale: float | None = None, **attributes: int) -> Call:
    """A Cast to 8-bit floating point, or a QuantizeLinear."""
    if scale is None:
        node = onnx.helper.make_node("Cast", ["x"], ["y"], to=kind, **attributes)
        inputs = [x]
    else:
        node = onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], **attributes)
        zero = np.zeros((), EIGHT_BITS[kind])
        inputs = [x, Ball(np.asarray(scale)), Ball(zero)]
    evaluate = NodeEvaluator(node, {"": 21}, narrows=True)
    return Call(evaluate, inputs, evaluate([each.value for each in inputs]), U)


@pytest.mark.parametrize("scale", [None, 1.0])
@pytest.mark.parametrize("kind", EIGHT_BITS)
def test_eight_bits_saturate_or_do_not(kind: int, scale: float | None) -> None:
    largest = float(ml_dtypes.finfo(EIGHT_BITS[kind]).max)
    x = Ball(np.array([1.01 * largest, -2 * largest, np.inf, np.nan, 1.0, 1e-9]))
    y = stored(kind, x, scale).outputs[0]
    assert y.dtype == EIGHT_BITS[kind]
    expected = [largest, -largest, largest, np.nan, 1.0, 0.0]
    np.testing.assert_array_equal(y.astype(np.float64), expected)
    y = stored(kind, x, scale, saturate=0).outputs[0]
    beyond = np.nan if kind == 17 else np.inf
    expected = [largest, -beyond, beyond, np.nan, 1.0, 0.0]
    np.testing.assert_array_equal(y.astype(np.float64), expected)


@pytest.mark.parametrize("kind", EIGHT_BITS)
def test_a_number_of_eight_bits_is_undecided_on_a_tie_alone(kind: int) -> None:
    step = 1 / 8 if kind == 17 else 1 / 4
    tie = 1 + step / 2
    x = Ball(np.array([tie, tie, 1.01, np.nan]), np.array([0.0, 1e-3, 1e-3, 0.0]))
    error = bound_error(stored(kind, x))
    assert error is not None
    assert error.tolist() == [0.0, step, 0.0, 0.0]
    # Division rounds, so that each tie of a quotient may go either way.
    error = bound_error(stored(kind, x, 1.0))
    assert error is not None
    assert error.tolist() == [step, step, 0.0, 0.0]


@pytest.mark.parametrize("kind", EIGHT_BITS)
def test_the_error_of_a_number_of_eight_bits_stays_within_its_type(kind: int) -> None:
    dtype = EIGHT_BITS[kind]
    largest = float(ml_dtypes.finfo(dtype).max)
    x = Ball(np.array([largest, 1.0], dtype), np.array([largest / 7, 0.25]))
    call = Call(*_widening(x), U)
    assert call.end(0, 1).astype(np.float64).tolist() == [largest, 1.25]
    assert bound_error(call).tolist() == [largest / 7, 0.25]


def _widening(x: Ball) -> tuple[NodeEvaluator, list[Ball], list[Array]]:
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT)
    evaluate = NodeEvaluator(node, {"": 21}, narrows=True)
    return evaluate, [x], evaluate([x.value])
