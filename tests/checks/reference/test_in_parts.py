"""Products and softmaxes that are filled part by part, on several cores, are those of whole arrays to the bit."""

import numpy as np
import pytest
from onnx.helper import make_node

from wpk import blocks
from wpk.checks.float64_nodes import Array, NodeEvaluator
from wpk.checks.reference import linear

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def several_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(3))
    monkeypatch.setattr(blocks, "PART", 32)


def _array(*shape: int) -> Array:
    return RNG.standard_normal(shape)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4, 3, 5, 6), (4, 3, 6, 7)),
        ((4, 3, 5, 6), (3, 6, 7)),
        ((4, 1, 5, 6), (1, 3, 6, 7)),
        ((5, 6), (4, 6, 7)),
        ((1, 40, 6), (1, 6, 7)),
        ((3, 40, 6), (6, 7)),
        ((6,), (4, 6, 7)),
        ((4, 5, 6), (6,)),
        ((2, 0, 6), (2, 6, 7)),
    ],
)
def test_products(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = _array(*left), _array(*right)
    (found,) = NodeEvaluator(make_node("MatMul", ["a", "b"], ["y"]), {"": 21})([a, b])
    np.testing.assert_allclose(found, a @ b, rtol=1e-13, atol=1e-14)
    assert found.shape == (a @ b).shape


def test_operands_that_are_seen_in_another_order() -> None:
    a, b = _array(4, 5, 3, 6).transpose(0, 2, 1, 3), _array(4, 7, 3, 6).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(linear.matmul(a, b), a @ b, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("opset", [11, 21])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmaxes(opset: int, axis: int) -> None:
    x = _array(6, 5, 9) * 3.0
    (found,) = NodeEvaluator(make_node("Softmax", ["x"], ["y"], axis=axis), {"": opset})([x])
    axes = tuple(range(axis % 3, 3)) if opset < 13 else (axis,)
    right = np.exp(x - x.max(axis=axes, keepdims=True))
    assert np.array_equal(found, right / right.sum(axis=axes, keepdims=True))


def test_parts_are_many_and_are_all() -> None:
    for shape, width in (((4, 3, 5), 7), ((60,), 7), ((1, 1, 60), 7), ((60,), 100)):
        parts = blocks.parts_of_rows(shape, width)
        seen = np.zeros(shape, int)
        for part in parts:
            seen[part] += 1
        assert len(parts) >= 6
        assert (seen == 1).all()
        assert all(seen[part].size * width <= max(width, blocks.PART) for part in parts)


def test_little_is_one_part() -> None:
    assert blocks.parts_of_rows((4, 3), 5) == [(slice(0, 4), slice(0, 3))]
    assert blocks.parts_of_rows((), 5) == [()]
    assert blocks.parts_of_rows((0, 3), 5) == []
