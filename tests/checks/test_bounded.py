"""Values with bounds, one node's call, and rounding."""

import numpy as np
import pytest
from onnx import helper

from wpk.checks.bounded import Ball, Call, float_type, rounding
from wpk.checks.float64_nodes import NodeEvaluator
from wpk.dtypes import DType


def call(*inputs: Ball | None, op: str = "Add", place: int = 0, **attributes: object) -> Call:
    names = ["" if each is None else name for each, name in zip(inputs, "abc", strict=False)]
    node = helper.make_node(op, names, ["y"], **attributes)
    evaluate = NodeEvaluator(node, {"": 24})
    outputs = evaluate([None if each is None else each.value for each in inputs])
    return Call(evaluate, inputs, outputs, 2.0**-24, place=place)


@pytest.mark.parametrize(
    ("dtype", "roundoff", "least"),
    [
        (DType.FP32, 2.0**-24, 2.0**-149),
        (DType.FP16, 2.0**-11, 2.0**-24),
        (DType.BF16, 2.0**-8, 2.0**-133),
    ],
)
def test_rounding_costs_half_a_step_and_near_zero_half_the_least_number(
    dtype: DType, roundoff: float, least: float
) -> None:
    values = np.array([0.0, 1.0, -3.0, least / 2, 1.5 * least])
    expected = roundoff * np.abs(values) + least / 2
    assert rounding(values, dtype).tolist() == expected.tolist()
    assert (np.abs(values.astype(dtype.numpy).astype(float) - values) <= expected).all()


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT64, DType.BOOL])
def test_whole_numbers_are_not_rounded(dtype: DType) -> None:
    assert rounding(np.array([[3], [100]]), dtype).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("dtype", list(DType))
def test_floating_point_types_are_told_from_others(dtype: DType) -> None:
    floats = (DType.FP32, DType.FP16, DType.BF16)
    assert float_type(dtype.numpy) is (dtype if dtype in floats else None)
    assert float_type(np.dtype(np.float64)) is None


def test_an_input_that_is_missing_has_no_value_and_no_error() -> None:
    given = call(Ball(np.array([-1.0, 2.0]), np.full(2, 0.1)), None, op="Clip")
    assert (given.errs(0), given.errs(1), given.errs(2)) == (True, False, False)
    assert [given.error(place).tolist() for place in (0, 1, 2)] == [[0.1, 0.1], 0.0, 0.0]
    with pytest.raises(ValueError, match="Clip without input 1"):
        given.value(1)


def test_an_exact_input_has_errors_of_zero_in_its_shape() -> None:
    given = call(Ball(np.ones((2, 3))), Ball(np.ones(3), np.full(3, 0.5)))
    assert not given.errs(0)
    assert given.error(0).tolist() == [[0.0] * 3] * 2


def test_the_ends_of_what_an_input_may_be() -> None:
    number = Ball(np.array([1.0, 2.0]), np.array([0.5, 0.0]))
    whole = Ball(np.array([250, 7, 2], np.uint8), np.array([9.0, 0.0, 3.0]))
    flags = Ball(np.array([True, False, True, False]), np.array([1.0, 1.0, 0.0, 0.0]))
    ends = [[call(x, op="Identity").end(0, side) for side in (-1, 1)] for x in (number, whole)]
    assert [[end.tolist() for end in pair] for pair in ends] == [
        [[0.5, 2.0], [1.5, 2.0]],
        [[241, 7, 0], [255, 7, 5]],
    ]
    assert all(end.dtype == np.uint8 for end in ends[1])
    low, high = (call(flags, op="Not").end(0, side).tolist() for side in (-1, 1))
    assert (low, high) == ([False, False, True, False], [True, True, True, False])


def test_errors_of_inputs_add_up_and_each_is_tried_in_both_directions() -> None:
    x = Ball(np.array([1.0, 0.5, np.inf]), np.array([0.25, 0.125, 0.125]))
    y = Ball(np.array([2.0, -3.0, 1.0]), np.array([0.5, 0.0, 0.5]))
    given = call(x, y)
    with np.errstate(invalid="ignore"):
        assert given.moved((0, 1)).tolist() == [0.75, 0.125, 0.0]  # infinity is not moved
        assert given.moved((1,)).tolist() == [0.5, 0.0, 0.0]
    relu = call(Ball(np.array([0.5, -0.25]), np.full(2, 1.0)), op="Relu")
    assert relu.moved((0,)).tolist() == [1.0, 0.75]  # upwards; downwards by 0.5 and 0
    less = call(Ball(np.array([0.5, 2.0]), np.full(2, 1.0)), Ball(np.ones(2)), op="Min")
    assert less.moved((0,)).tolist() == [1.0, 0.0]  # downwards; 2 - 1 is just 1
