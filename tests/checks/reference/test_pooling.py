"""Our pools give what going through the windows one by one gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.checks.reference.operators import REFERENCE_OPS


@dataclass(frozen=True)
class Along:
    """Windows along one axis."""

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int

    def windows(self, ceil: bool) -> list[list[int]]:
        """The taps of each window: from -begin, and beyond the axis, too."""
        return [
            [start + tap * self.dilation for tap in range(self.kernel)]
            for start in range(-self.begin, self.size + self.end, self.stride)
            if self._is_one(start, ceil)
        ]

    def _is_one(self, start: int, ceil: bool) -> bool:
        last, behind = start + (self.kernel - 1) * self.dilation, self.size + self.end
        partly = ceil and start < self.size and last - self.stride < behind - 1
        return last < behind or partly


def drawn(count: int, rank: int) -> Iterator[tuple[Along, ...]]:
    rng = np.random.default_rng(rank)
    while count:
        axes = []
        for _ in range(rank):
            kernel, stride, dilation = (int(rng.integers(1, most)) for most in (5, 5, 4))
            begin, end = rng.integers(0, kernel, 2).tolist()
            least = max(1, (kernel - 1) * dilation + 1 - begin - end)
            size = least + int(rng.integers(0, 6))
            axes.append(Along(size, kernel, stride, dilation, begin, end))
        yield tuple(axes)
        count -= 1


def pooled(name: str, axes: tuple[Along, ...], x: np.ndarray, outputs: int, **more: int) -> Any:
    node = onnx.helper.make_node(
        name,
        ["x"],
        ["y", "i"][:outputs],
        kernel_shape=[each.kernel for each in axes],
        strides=[each.stride for each in axes],
        dilations=[each.dilation for each in axes],
        pads=[*(each.begin for each in axes), *(each.end for each in axes)],
        **more,
    )
    found = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, {"x": x})
    return found[0] if outputs == 1 else found


def places(axes: tuple[Along, ...], ceil: bool) -> Any:
    """Where each window of the output lies, and the taps in it."""
    by_axis = [each.windows(ceil) for each in axes]
    shape = tuple(len(each) for each in by_axis)
    for window in np.ndindex(*shape):
        taps = itertools.product(*(each[i] for each, i in zip(by_axis, window, strict=True)))
        yield shape, window, list(taps)


def inside(axes: tuple[Along, ...], tap: tuple[int, ...], padded: bool = False) -> bool:
    return all(
        -each.begin * padded <= at < each.size + each.end * padded
        for each, at in zip(axes, tap, strict=True)
    )


def values(axes: tuple[Along, ...], seed: int, **_: int) -> np.ndarray:
    """Few different numbers, so that the largest is often there twice."""
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 3, (2, 3, *(each.size for each in axes))).astype(np.float64)


@pytest.mark.parametrize(("rank", "count"), [(1, 60), (2, 40), (3, 5)])
@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_largest_of_each_window_and_where_it_is(
    rank: int, count: int, ceil: int, order: str
) -> None:
    for seed, axes in enumerate(drawn(count, rank)):
        x = values(axes, seed)
        y, index = pooled("MaxPool", axes, x, 2, ceil_mode=ceil, storage_order=int(order == "F"))
        assert index.dtype == np.int64
        for shape, window, taps in places(axes, bool(ceil)):
            assert y.shape == index.shape == (2, 3, *shape)
            known = [tap for tap in taps if inside(axes, tap)]
            for plane, of in enumerate(np.ndindex(2, 3)):
                best = max((x[(*of, *tap)] for tap in known), default=np.finfo(np.float32).min)
                assert y[(*of, *window)] == best
                first = next((tap for tap in known if x[(*of, *tap)] == best), None)
                assert index[(*of, *window)] == (
                    -1
                    if first is None
                    else np.ravel_multi_index(first, x.shape[2:], order=order)
                    + plane * x[0, 0].size
                )


@pytest.mark.parametrize(("rank", "count"), [(1, 60), (2, 40), (3, 5)])
@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("padded", [0, 1])
def test_the_average_of_each_window(rank: int, count: int, ceil: int, padded: int) -> None:
    for seed, axes in enumerate(drawn(count, rank)):
        x = values(axes, seed)
        y = pooled("AveragePool", axes, x, 1, ceil_mode=ceil, count_include_pad=padded)
        for shape, window, taps in places(axes, bool(ceil)):
            assert y.shape == (2, 3, *shape)
            total = sum((x[(..., *tap)] for tap in taps if inside(axes, tap)), np.zeros((2, 3)))
            counted = sum(inside(axes, tap, bool(padded)) for tap in taps)
            np.testing.assert_allclose(y[(..., *window)], total / max(counted, 1), atol=1e-14)


def test_the_first_that_is_no_number_is_the_largest() -> None:
    axes = (Along(4, 2, 1, 1, 0, 0),)
    y, index = pooled("MaxPool", axes, np.array([[[1.0, 2.0, np.nan, np.nan]]]), 2)
    np.testing.assert_array_equal(y, [[[2.0, np.nan, np.nan]]])
    assert index.tolist() == [[[1, 2, 2]]]


def test_without_attributes_windows_lie_side_by_side_and_strides_are_one() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 6))
    for name, reduced in (("MaxPool", np.maximum), ("AveragePool", lambda a, b: (a + b) / 2)):
        node = onnx.helper.make_node(name, ["x"], ["y"], kernel_shape=[1, 2])
        (y,) = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, {"x": x})
        np.testing.assert_allclose(y, reduced(x[..., :-1], x[..., 1:]), atol=1e-15, strict=True)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 5, 4), (2, 3, 2, 4, 3)])
def test_the_largest_of_a_channel(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    node = onnx.helper.make_node("GlobalMaxPool", ["x"], ["y"])
    (y,) = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, {"x": x})
    expected = x.reshape(2, 3, -1).max(axis=-1).reshape(2, 3, *(1,) * (len(shape) - 2))
    np.testing.assert_array_equal(y, expected, strict=True)
