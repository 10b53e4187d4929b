"""The bound of a determinant holds what elimination in fp32 gives, and no other matrix."""

from typing import Any

import numpy as np
import onnx
import pytest

from wpk.checks.bounded import Ball, Call
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator

U = 2.0**-24
NODE = onnx.helper.make_node("Det", ["x"], ["y"])


def bounded(x: Any, error: Any = None) -> tuple[Any, Any]:
    """The determinants in float64, and the bound of their errors."""
    evaluate = NodeEvaluator(NODE, {"": 17})
    given = [Ball(np.asarray(x, np.float64), error)]
    (y,) = evaluate([given[0].value])
    found = bound_error(Call(evaluate, given, [y], U))
    assert found is not None
    return np.asarray(y, np.float64), found


def eliminated(x: Any) -> Any:
    """By rows with the largest pivots, in fp32 throughout."""
    numbers = []
    for matrix in x.astype(np.float32):
        a, number = matrix.copy(), np.float32(1)
        for step in range(len(a)):
            pivot = step + int(np.abs(a[step:, step]).argmax())
            if pivot != step:
                a[[step, pivot]], number = a[[pivot, step]], -number
            number *= a[step, step]
            if a[step, step]:
                a[step + 1 :] -= np.outer(a[step + 1 :, step] / a[step, step], a[step])
        numbers.append(number)
    return np.array(numbers, np.float64)


def drawn(size: int) -> Any:
    x = np.random.default_rng(size).standard_normal((200, size, size)).astype(np.float32)
    x[:20, -1] = x[:20, 0] * np.float32(1 + 2.0**-12)  # nearly singular
    x[20:40] = x[20:40, :1] * x[20:40, :, :1]  # of rank one
    return x


@pytest.mark.parametrize("size", [1, 2, 4, 9, 20])
def test_elimination_stays_within_the_bound(size: int) -> None:
    x = drawn(size)
    y, error = bounded(x)
    apart = np.abs(eliminated(x) - y)
    assert (apart <= error + U * np.abs(y)).all()
    assert size == 1 or np.median(apart[40:] / error[40:]) > 1e-3 / size


@pytest.mark.parametrize("size", [2, 4, 9])
def test_another_element_does_not(size: int) -> None:
    x = drawn(size)[40:]
    y, error = bounded(x)
    x[:, 0, 0] += np.float32(3e-3)
    assert (np.abs(eliminated(x) - y) > error).mean() > 0.8


def test_errors_of_elements_count_and_what_is_not_finite_has_none() -> None:
    x = np.stack([np.eye(3), np.full((3, 3), np.nan)])
    error = np.zeros((2, 3, 3))
    error[:, 1, 1] = 0.25
    _, found = bounded(x, error)
    assert found[0] > 0.25
    assert found[1] == 0.0
