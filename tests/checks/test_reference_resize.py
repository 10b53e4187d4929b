"""Resize: where samples come from by ONNX's text, and how far fp32 coordinates may move the result."""

import itertools

import node_cases
import numpy as np
import pytest
from node_cases import NodeCase, floats, ints

from wpk.checks.bounded import KERNELS, Bounded, Call
from wpk.checks.compare import compare
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator

MODES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def resized(
    attributes: str, x: np.ndarray, *given: node_cases.Given
) -> tuple[np.ndarray, np.ndarray]:
    """The result along the last axis of a row, and its bound."""
    text = (
        f'Resize<{attributes}>(a, "", {"b" if given[0].dtype.kind == "f" else chr(34) * 2 + ", b"})'
    )
    case = NodeCase(text, (x, *given), (18,))
    evaluate = NodeEvaluator(case.node(), {"": 18})
    inputs = [None if each is None else Bounded(each) for each in case.inputs()]
    outputs = evaluate([None if each is None else each.value for each in inputs])
    error = bound_error(Call(evaluate, inputs, outputs, KERNELS.roundoff))
    return outputs[0], np.zeros(1) if error is None else error


def test_corners_are_aligned_by_the_number_of_samples() -> None:
    x = np.arange(7.0)[None]
    y, _ = resized(
        'mode = "linear", coordinate_transformation_mode = "align_corners"', x, floats(1, 1.5)
    )
    np.testing.assert_allclose(y[0], np.arange(10) * 6 / 9, rtol=1e-15)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("half_pixel", [0.0, 0.25, 0.75, 1.25, 1.75, 2.0]),
        ("asymmetric", [0.0, 0.5, 1.0, 1.5, 2.0, 2.0]),
        ("align_corners", [0.0, 0.4, 0.8, 1.2, 1.6, 2.0]),
    ],
)
def test_positions_follow_the_text(mode: str, expected: list[float]) -> None:
    attributes = f'mode = "linear", coordinate_transformation_mode = "{mode}"'
    y, _ = resized(attributes, np.arange(3.0)[None], floats(1, 2))
    np.testing.assert_allclose(y[0], expected, atol=1e-15)


def test_a_single_sample_of_pytorch_is_the_first() -> None:
    text = 'coordinate_transformation_mode = "pytorch_half_pixel"'
    y, _ = resized(text, np.arange(8.0)[None], ints(1, 1))
    assert y.tolist() == [[0.0]]
    y, _ = resized(
        'coordinate_transformation_mode = "half_pixel"', np.arange(8.0)[None], ints(1, 1)
    )
    assert y.tolist() == [[3.0]]  # position 3.5


def in_fp32(mode: str, x: np.ndarray, count: int, nearest: bool) -> np.ndarray:
    """As kernels compute: coordinates and weights in fp32."""
    one, size = np.float32, x.shape[1]
    at, scale = np.arange(count, dtype=np.float32), one(count / size)
    position = {
        "align_corners": at * one(size - 1) / one(max(1, count - 1)),
        "asymmetric": at / scale,
    }.get(mode, (at + one(0.5)) / scale - one(0.5))
    if nearest:
        return x[:, np.clip(np.ceil(position - one(0.5)), 0, size - 1).astype(int)]
    inside = np.clip(position, one(0), one(size - 1))
    low = inside.astype(int)
    weight = inside - low.astype(np.float32)
    return x[:, low] * (one(1) - weight) + x[:, np.minimum(low + 1, size - 1)] * weight


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nearest", [False, True])
def test_fp32_coordinates_stay_within_the_bound(mode: str, nearest: bool) -> None:
    rng = np.random.default_rng(0)
    kind = "" if nearest else 'mode = "linear", '
    undecided = 0
    for size, count in itertools.product((5, 7, 13, 100), (2, 9, 12, 33, 251)):
        x = rng.standard_normal((3, size)).astype(np.float32)
        attributes = f'{kind}coordinate_transformation_mode = "{mode}"'
        y, error = resized(attributes, x.astype(np.float64), ints(3, count))
        found = compare(in_fp32(mode, x, count, nearest), y, error)
        assert found.passed, (size, count, found.example)
        undecided += int((error > 1e-3).sum())
    assert undecided < 0.05 * 4 * 3 * sum((2, 9, 12, 33, 251))


def test_another_function_breaks_the_bound() -> None:
    x = np.random.default_rng(1).standard_normal((3, 13))
    attributes = 'mode = "linear", coordinate_transformation_mode = '
    y, error = resized(f'{attributes}"half_pixel"', x, ints(3, 20))
    other, _ = resized(f'{attributes}"asymmetric"', x, ints(3, 20))
    assert compare(other, y, error).wrong > 40


def test_the_nearest_of_a_tie_may_be_either_and_no_third() -> None:
    x = np.array([[0.0, 1.0, 5.0, 7.0, 9.0]])
    text = 'coordinate_transformation_mode = "asymmetric", nearest_mode = "ceil"'
    y, error = resized(text, x, ints(1, 7))  # positions 0, 0.71, 1.43, 2.14, 2.86, 3.57, 4.29
    assert y.tolist() == [[0.0, 1.0, 5.0, 7.0, 7.0, 9.0, 9.0]]
    assert error.max() < 1e-5
    x = np.arange(6.0)[None] ** 2
    y, error = resized('coordinate_transformation_mode = "asymmetric"', x, floats(1, 5 / 3))
    at = 5  # position 3 but for the rounding of the scale
    text = text.replace("ceil", "floor")
    y, error = resized(text, x, floats(1, 5 / 3))
    assert np.flatnonzero(error > 1e-3).tolist() == [at]
    assert error[0, at] == pytest.approx(5.0)


def test_a_tie_that_fp32_computes_exactly_is_decided() -> None:
    x = np.array([[0.0, 1.0, 5.0]])
    y, error = resized('coordinate_transformation_mode = "asymmetric"', x, floats(1, 2))
    assert y.tolist() == [[0.0, 0.0, 1.0, 1.0, 5.0, 5.0]]  # positions 0, 0.5, 1, 1.5, 2, 2.5
    assert error.max() < 1e-5
