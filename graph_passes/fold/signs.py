"""Which tensors hold no number below zero, whatever the inputs of the model are (NaN aside)."""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import floats, is_op, producer
from wpk.operators import names

_ALWAYS = names(lambda row: row.between is not None and row.between[0] >= 0.0)
_WHERE_INPUTS_ARE = ("Add", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
_DEEPEST = 8
"""Nodes looked back at: the variance that a root is taken of is five nodes away from its square."""


def is_never_negative(tensor: gs.Tensor, depth: int = _DEEPEST) -> bool:
    """Tell whether every element is zero, positive or no number."""
    array = floats(tensor)
    if array is not None:
        return bool((array >= 0.0).all())
    node = producer(tensor)
    if node is None or depth == 0:
        return False
    if is_op(node, "Mul", "Pow") and _is_square(node):
        return True
    if is_op(node, *_ALWAYS):
        return True
    first = node.inputs[: 2 if node.op == "Add" else 1]
    return is_op(node, *_WHERE_INPUTS_ARE) and all(
        is_never_negative(each, depth - 1) for each in first
    )


def _is_square(node: gs.Node) -> bool:
    if node.op == "Mul":
        return node.inputs[0] is node.inputs[1]
    exponent = floats(node.inputs[1])
    return exponent is not None and bool((exponent == 2.0).all())
