"""Whether kernels of attention read queries, keys and values row by row.

A row of a head lies together in memory where exporters part heads from channels last. Where channels come
first (cross-covariance attention, El-Nouby et al. 2021), neighbours of a row lie as far apart as pixels have
channels: tensor cores cannot copy such rows, and what is left waits for one element after the other.
Products read their second operand along either of its dimensions. What a convolution makes is stored channels last
(`channels-last`), though its axes are not in that order yet.
"""

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.kinds import SPATIAL, is_elementwise
from wpk.graph_passes.core.query import is_op, producer
from wpk.graph_passes.movement.chains.views import Factor, trace, views_before

_IMAGES = (3, 4)
"""Ranks of what is stored channels last."""

_WARP = 32
_MOST_WAITS = 16
"""Elements that a warp waits for, one after the other, in the time that two further kernels take to start."""


def why_apart(first: gs.Node, last: gs.Node) -> str | None:
    """Say which operand's rows lie apart, so that two products and a softmax are faster.

    Args:
        first: Queries times transposed keys, of known sizes but for the first and those of rows.
        last: Weights times values.
    """
    q, k, v = first.inputs[0], first.inputs[1], last.inputs[1]
    keys = v.shape[-2]
    turns = -(-keys // _WARP) if isinstance(keys, int) else 1
    if turns * (q.shape[-1] + v.shape[-1]) <= _MOST_WAITS:
        return None
    apart = [
        tensor.name for tensor, axis in ((q, -1), (k, -2), (v, -1)) if _lies_apart(tensor, axis)
    ]
    return f"elements of a row of '{apart[0]}' lie apart" if apart else None


def _lies_apart(tensor: gs.Tensor, axis: int) -> bool:
    """Whether neighbours along an axis are none in what the views in front of a tensor start from."""
    chain = views_before(tensor)
    views = trace(chain[0].inputs[0], chain) if chain else None
    if views is None or not isinstance(views.target[axis], int) or views.target[axis] == 1:
        return False
    group = views.groups[axis]
    order = list(range(len(views.source)))
    if len(order) in _IMAGES and _is_of_convolution(chain[0].inputs[0]):
        order = [0, *order[2:], 1]
    return bool(group) and not _is_innermost(group[-1], views.source, order)


def _is_innermost(factor: Factor, source: Sequence[int | str | None], order: list[int]) -> bool:
    """Whether neighbours along a factor are neighbours in memory, where the axes of ``source`` lie in an order."""
    behind = order[order.index(factor.axis) + 1 :]
    return factor.step == 1 and all(source[axis] == 1 for axis in behind)


def _is_of_convolution(tensor: gs.Tensor) -> bool:
    """Whether a convolution or a pool makes a tensor, up to arithmetic and parts of its channels."""
    node = producer(tensor)
    while node is not None and (is_elementwise(node) or is_op(node, "Split", "Slice")):
        node = producer(node.inputs[0])
    return is_op(node, *SPATIAL)
