"""The size of what normalisations subtract from each other, against loops over their rows."""

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.helper import make_node

from wpk.checks.centred import size_before_the_difference

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 4, 5))


def sizes(rows: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Each element of some rows over the standard deviation of its own."""
    found = [
        [abs(v) / (sum((w - sum(row) / len(row)) ** 2 for w in row) / len(row) + epsilon) ** 0.5
         for v in row]
        for row in rows
    ]  # fmt: skip
    return np.array(found)


@pytest.mark.parametrize("axis", [None, 1, 2, 3, -1, -2, -3])
@pytest.mark.parametrize("epsilon", [None, 0.5])
def test_rows_of_a_layer_begin_at_its_axis(axis: int | None, epsilon: float | None) -> None:
    begin = 3 if axis is None else axis % 4
    scale = RNG.standard_normal(X.shape[begin:])
    given = {"axis": axis, "epsilon": epsilon}
    attributes = {name: value for name, value in given.items() if value is not None}
    node = make_node("LayerNormalization", ["x", "s", "b"], ["y"], **attributes)
    rows = X.reshape(-1, scale.size)
    expected = sizes(rows, 1e-5 if epsilon is None else epsilon).reshape(X.shape) * np.abs(scale)
    found = size_before_the_difference(node, [X, scale, np.ones(scale.shape)])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3, 20), (2, 3, 4, 5), (2, 3, 1, 4, 5)])
def test_rows_of_an_instance_are_its_channels(shape: tuple[int, ...]) -> None:
    x, scale = X.reshape(shape), np.array([-2.0, 0.5, 3.0])
    node = make_node("InstanceNormalization", ["x", "s", "b"], ["y"])
    found = size_before_the_difference(node, [x, scale, None])
    assert found is not None
    rows = x.reshape(2, 3, 20)
    for channel, factor in enumerate((2.0, 0.5, 3.0)):
        expected = factor * sizes(rows[:, channel], 1e-5)
        np.testing.assert_allclose(found.reshape(rows.shape)[:, channel], expected, rtol=1e-12)


def test_what_hardly_varies_is_divided_by_what_is_added_to_its_variance() -> None:
    node = make_node("LayerNormalization", ["x", "s"], ["y"])
    found = size_before_the_difference(node, [np.full((3, 7), -2.0), np.full(7, 0.5)])
    np.testing.assert_allclose(found, np.full((3, 7), 1e5**0.5), rtol=1e-12)


@pytest.mark.parametrize("operator", ["RMSNormalization", "Softmax", "BatchNormalization"])
def test_other_operators_subtract_no_mean_of_their_rows(operator: str) -> None:
    node = make_node(operator, ["x", "s"], ["y"])
    assert size_before_the_difference(node, [X, np.ones(5)]) is None
