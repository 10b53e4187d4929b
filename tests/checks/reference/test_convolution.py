"""Our convolution gives what its definition gives, tap by tap."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.checks.reference import convolution
from wpk.checks.reference.operators import REFERENCE_OPS


def convolved(x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, **attributes: Any) -> Any:
    inputs = {"x": x, "w": w} | ({} if bias is None else {"b": bias})
    node = onnx.helper.make_node("Conv", list(inputs), ["y"], **attributes)
    (y,) = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, inputs)
    return y


def defined(
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray | None,
    group: int,
    strides: list[int],
    dilations: list[int],
    pads: list[int],
) -> Any:
    """By the definition: one output element after the other."""
    rank = x.ndim - 2
    around = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x, around)
    axes = list(zip(padded.shape[2:], w.shape[2:], strides, dilations, strict=True))
    counts = [1 + (n - (f - 1) * d - 1) // s for n, f, s, d in axes]
    y = np.zeros((len(x), len(w), *counts))
    inputs, outputs = w.shape[1], len(w) // group
    for out, place in product(range(len(w)), np.ndindex(*counts)):
        window = tuple(
            slice(p * s, p * s + (f - 1) * d + 1, d)
            for p, (_, f, s, d) in zip(place, axes, strict=True)
        )
        first = out // outputs * inputs
        taps = padded[(slice(None), slice(first, first + inputs), *window)]
        y[(slice(None), out, *place)] = (taps * w[out]).reshape(len(x), -1).sum(axis=1)
    return y if bias is None else y + bias.reshape(-1, *(1,) * rank)


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Small whole numbers, whose sums are exact."""
    return rng.integers(-4, 5, shape).astype(np.float64)


@pytest.mark.parametrize(("rank", "count"), [(1, 12), (2, 12), (3, 3)])
@pytest.mark.parametrize(
    ("channels", "filters", "group"),
    [(3, 5, 1), (1, 4, 1), (4, 6, 2), (6, 9, 3), (3, 3, 3), (3, 6, 3), (2, 6, 2)],
)
@pytest.mark.parametrize("block", [1, 60, 1 << 16])
def test_every_convolution_is_as_defined(
    rank: int, count: int, channels: int, filters: int, group: int, block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(convolution, "BLOCK", block)
    rng = np.random.default_rng(rank)
    for seed in range(count):
        kernel, strides, dilations = (rng.integers(1, 4, rank).tolist() for _ in range(3))
        pads = rng.integers(0, 3, 2 * rank).tolist()
        sizes = [
            (f - 1) * d + 1 + int(rng.integers(0, 4))
            for f, d in zip(kernel, dilations, strict=True)
        ]
        x = whole(rng, 2, channels, *sizes)
        w = whole(rng, filters, channels // group, *kernel)
        bias = whole(rng, filters) if seed % 2 else None
        how = {"group": group, "strides": strides, "dilations": dilations, "pads": pads}
        expected = defined(x, w, bias, **how)  # type: ignore[arg-type]
        np.testing.assert_array_equal(convolved(x, w, bias, **how), expected, strict=True)


def test_padding_before_a_part_that_is_as_large_as_the_input() -> None:
    """Windows read one element of padding, and not the last of the input."""
    rng = np.random.default_rng(0)
    x, w = whole(rng, 1, 2, 9, 8), whole(rng, 3, 2, 3, 2)
    how = {"strides": [3, 2], "pads": [1, 0, 0, 0]}
    expected = defined(x, w, None, 1, dilations=[1, 1], **how)
    np.testing.assert_array_equal(convolved(x, w, None, **how), expected, strict=True)


@pytest.mark.parametrize("group", [1, 2, 4])
def test_without_attributes_nothing_is_padded_or_left_out(group: int) -> None:
    rng = np.random.default_rng(0)
    x, w, bias = whole(rng, 2, 4, 5, 7), whole(rng, 8, 4 // group, 2, 3), whole(rng, 8)
    given = {} if group == 1 else {"group": group}
    expected = defined(x, w, bias, group, [1, 1], [1, 1], [0, 0, 0, 0])
    np.testing.assert_array_equal(convolved(x, w, bias, **given), expected, strict=True)
