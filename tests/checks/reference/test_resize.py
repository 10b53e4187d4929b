"""Resize: where samples come from by ONNX's text, and how far fp32 coordinates may move the result."""

import itertools

import numpy as np
import pytest
from support.networks import node_cases
from support.networks.node_cases import NodeCase, floats, ints

from wpk.checks.bounded import KERNELS, Ball, Call
from wpk.checks.compare import compare
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator
from wpk.checks.reference.resize import resampling
from wpk.checks.second_opinion import Judgement, SecondOpinion, Verdict

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
    inputs = [None if each is None else Ball(each) for each in case.inputs()]
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


LINEAR = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}


def test_moved_positions_are_off_where_fp32_rounds_them_and_along_their_axis_alone() -> None:
    """The element of a ramp is its position."""
    attributes = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    how = resampling((2, 5, 4), None, [2, 13, 10], attributes)
    assert how is not None
    assert how.axes == [1, 2]
    along = [np.arange(13) / 3, np.arange(10) / 3]
    ramps = np.meshgrid(np.arange(5.0), 100 * np.arange(4.0), indexing="ij")
    x = np.stack([sum(ramps), -sum(ramps)])
    at = along[0][:, None] + 100 * along[1]
    np.testing.assert_allclose(how(x), [at, -at], atol=1e-12)
    for axis, unit in ((1, 1.0), (2, 100.0)):
        for off in (-1e-3, 1e-3):
            own = along[axis - 1]
            moved = off * (own + 1) * (np.arange(own.size) % 3 != 0) * unit
            expected = at + (moved[:, None] if axis == 1 else moved)
            np.testing.assert_allclose(how(x, {axis: off}), [expected, -expected], atol=1e-10)


@pytest.mark.parametrize(
    ("nearest", "expected"),
    [
        ("round_prefer_floor", [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2]),
        ("round_prefer_ceil", [0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]),
        ("floor", [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]),
        ("ceil", [0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]),
    ],
)
def test_the_nearest_of_quarters(nearest: str, expected: list[int]) -> None:
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": nearest}
    how = resampling((3, 2), np.array([4.0, 1.0]), None, attributes)
    assert how is not None
    x = np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]])
    np.testing.assert_array_equal(how(x), x[expected])


@pytest.mark.parametrize("given", [{}, {"mode": None, "nearest_mode": None}])
def test_what_is_not_given_is_the_nearest_by_half_pixels(given: dict[str, None]) -> None:
    how = resampling((4,), np.zeros(0), [6], given)
    assert how is not None
    # positions -1/6, 1/2, 7/6, 11/6, 5/2, 19/6
    assert how(np.arange(4.0)).tolist() == [0, 0, 1, 2, 2, 3]


@pytest.mark.parametrize(
    "special",
    [
        {"antialias": 1},
        {"axes": [0, 1]},
        {"keep_aspect_ratio_policy": "not_larger"},
        {"mode": "cubic"},
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
    ],
)
def test_what_lowering_does_not_carry_is_left_to_onnx(special: dict[str, object]) -> None:
    attributes = {**LINEAR, "keep_aspect_ratio_policy": "stretch", "antialias": 0}
    assert resampling((4, 5), None, [6, 7], attributes) is not None
    assert resampling((4, 5), None, [6, 7], {**attributes, **special}) is None


def test_cubic_is_what_onnx_runtime_gives() -> None:
    x = np.random.default_rng(0).standard_normal((1, 1, 5, 6)).astype(np.float32)
    case = NodeCase('Resize<mode = "cubic">(a, "", "", b)', (x, ints(1, 1, 8, 9)), (18,))
    found = SecondOpinion({"": 18}).judge(
        case.node(), case.inputs(), NodeEvaluator(case.node(), {"": 18})
    )
    assert found == Judgement(Verdict.AGREES)


def test_an_axis_that_keeps_its_size_is_resampled_where_its_scale_is_not_one() -> None:
    how = resampling((3, 3), np.array([1.25, 1.0], np.float32), None, LINEAR)
    assert how is not None
    assert how.axes == [0]
    x = np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(how(x)[:, 0], [0.0, 2.4, 4.8])  # positions 0, 0.8, 1.6


def test_sizes_are_products_of_fp32() -> None:
    how = resampling((10,), np.array([0.7], np.float32), None, LINEAR)
    assert how is not None
    assert how(np.arange(10.0)).size == 7  # in float64 it were less than 7
