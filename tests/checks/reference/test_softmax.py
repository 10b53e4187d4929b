"""Softmax and LogSoftmax before opset 13: a row is all that lies from an axis on."""

import numpy as np
import onnx
import pytest

from wpk.checks.float64_nodes import NodeEvaluator
from wpk.checks.reference.softmax import softmax_axes

AXES = [(None, 1), (0, 0), (1, 1), (2, 2), (3, 3), (-1, 3), (-2, 2), (-4, 0)]


def node(operator: str, axis: int | None) -> onnx.NodeProto:
    given = {} if axis is None else {"axis": axis}
    return onnx.helper.make_node(operator, ["x"], ["y"], **given)


@pytest.mark.parametrize(("axis", "first"), AXES)
def test_the_first_axis_of_a_row(axis: int | None, first: int) -> None:
    assert softmax_axes(node("Softmax", axis), 4, 12) == tuple(range(first, 4))


@pytest.mark.parametrize("opset", [1, 11, 12])
@pytest.mark.parametrize(("axis", "first"), AXES)
def test_rows_are_normalised_however_large_their_elements_are(
    axis: int | None, first: int, opset: int
) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5))
    x += np.array([-2000.0, 0.0, 2000.0])[:, None, None]
    behind = tuple(range(first, 4))
    logarithm = x - np.logaddexp.reduce(x, behind, keepdims=True)
    (y,) = NodeEvaluator(node("LogSoftmax", axis), {"": opset})([x])
    np.testing.assert_allclose(y, logarithm, rtol=1e-12, atol=1e-14, strict=True)
    (y,) = NodeEvaluator(node("Softmax", axis), {"": opset})([x])
    np.testing.assert_allclose(y, np.exp(logarithm), rtol=1e-11, atol=0, strict=True)
