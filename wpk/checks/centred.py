"""Normalisations that subtract a mean: how far an output moves where its input and the mean round apart.

An implementation may compute (x - mean) / s, or x / s - mean / s. In the second form each product is
rounded at its own size, which 1 / s makes large where a row hardly varies. Disturbing the input does
not show that: the mean of a row of few elements moves together with them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from wpk.checks.bounded import Floats
from wpk.checks.float64_nodes import Array

_CENTRED = ("InstanceNormalization", "LayerNormalization")


def size_before_the_difference(
    node: onnx.NodeProto, given: Sequence[Array | None]
) -> Floats | None:
    """|scale * x / s| of each element; None for an operator that subtracts no mean.

    Args:
        node: Of ONNX's own domain.
        given: Its inputs in float64.
    """
    if node.op_type not in _CENTRED:
        return None
    x, scale = (np.asarray(each, np.float64) for each in given[:2])
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    axis = attributes.get("axis", -1)
    if node.op_type == "InstanceNormalization":
        axis, scale = 2, scale.reshape(-1, *(1,) * (x.ndim - 2))
    axes = tuple(range(axis % x.ndim, x.ndim))
    with np.errstate(all="ignore"):
        variance = x.var(axis=axes, keepdims=True)
        size: Floats = np.abs(scale * x / np.sqrt(variance + attributes.get("epsilon", 1e-5)))
    return size
