"""Nodes that treat each row alike."""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.kinds import ROWS, is_elementwise
from wpk.graph_passes.core.known import is_constant
from wpk.graph_passes.core.query import is_op, static_shape


def is_row_wise(node: gs.Node) -> bool:
    """Whether each row of a node's result follows from the same row of what it reads."""
    shape = static_shape(node.outputs[0])
    if shape is None or len(node.outputs) != 1:
        return False
    if is_op(node, *ROWS):
        axis = node.attrs.get("axis", -1)
        constant = all(map(is_constant, node.inputs[1:]))
        return (
            constant and axis in (-1, len(shape) - 1) and not is_op(node, "InstanceNormalization")
        )
    if is_op(node, "MatMul", "Gemm"):
        weights = [t for t in node.inputs[1:] if not t.is_empty()]
        constant = all(isinstance(t, gs.Constant) for t in weights)
        return (
            constant
            and _turns_nothing(node)
            and len(node.inputs[1].shape) == 2
            and all(_is_row(t) for t in weights[1:])
        )
    same = [t for t in node.inputs if isinstance(t, gs.Variable) and not t.is_empty()]
    constants = [t for t in node.inputs if isinstance(t, gs.Constant)]
    return (
        is_elementwise(node)
        and all(static_shape(t) == shape for t in same)
        and all(_is_row(t) for t in constants)
    )


def _turns_nothing(node: gs.Node) -> bool:
    return not node.attrs.get("transA", 0) and not isinstance(node.inputs[0], gs.Constant)


def _is_row(constant: gs.Tensor) -> bool:
    """Whether a constant is the same for all rows."""
    return all(size == 1 for size in (constant.shape or ())[:-1])
