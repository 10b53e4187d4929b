"""Normalisations that subtract a mean: how far an output moves where its input and the mean round apart.

An implementation may compute (x - mean) / s, or x / s - mean / s. In the second form each product is
rounded at its own size, which 1 / s makes large where a row hardly varies. Disturbing the input does
not show that: the mean of a row of few elements moves together with them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from wpk.checks.bounded import Floats, attribute_of
from wpk.checks.float64_nodes import Array

EPSILON = 1e-5
"""The epsilon of a normalisation that gives none."""

_CENTRED = ("InstanceNormalization", "LayerNormalization")


def size_before_the_difference(
    node: onnx.NodeProto, given: Sequence[Array | None]
) -> Floats | None:
    """|scale * x / s| of each element; None for an operator that subtracts no mean.

    Args:
        node: A node of ONNX's own domain.
        given: Its inputs in float64.
    """
    if node.op_type not in _CENTRED:
        return None
    x, scale = (np.asarray(each, np.float64) for each in given[:2])
    epsilon = attribute_of(node, "epsilon", EPSILON)
    with np.errstate(all="ignore"):
        variance = x.var(axis=row_axes(node, x.ndim), keepdims=True)
        size: Floats = to_channels(node, scale, x.ndim) * x / np.sqrt(variance + epsilon)
    return np.abs(size)


def row_axes(node: onnx.NodeProto, rank: int) -> tuple[int, ...]:
    """Axes of the input over which a normalisation takes its mean."""
    if node.op_type == "InstanceNormalization":
        return tuple(range(2, rank))
    return tuple(range(int(attribute_of(node, "axis", -1)) % rank, rank))


def to_channels(node: onnx.NodeProto, values: Floats, rank: int) -> Floats:
    """A normalisation's scale or shift, to be broadcast: instances have one for each channel."""
    if node.op_type == "InstanceNormalization":
        return np.expand_dims(values, tuple(range(1, rank - 1)))
    return values
