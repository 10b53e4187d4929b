"""DynamicQuantizeLinear in float64, and how far a kernel's results may lie from it."""

from collections.abc import Sequence

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
