"""Absorb element-wise constants into the weights and the bias of the linear operator beside them.

    L(x) op c    ->  L'(x)              op: +, -, *, / by a scalar or by one number per channel
    L(x op c)    ->  L'(x)              + and - only where no zero padding stands between
    (y + b) * c  ->  y * c + b * c      y made by a MatMul, whose bias is an Add behind it

`wpk.graph_passes.fold.linear_operator` states the algebra on the weights.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.base import GraphPass, PassResult
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.query import (
    floats,
    live_nodes,
    made_by,
    rank,
    split_constant,
    why_shared,
)
from wpk.graph_passes.fold.linear_operator import (
    LINEAR_OPS,
    ChannelAffine,
    absorb_after,
    absorb_before,
    channel_axis,
    channel_vector,
    input_channels,
    output_channels,
    why_not_after,
    why_not_before,
    why_not_linear,
)

_AFFINE_OPS = ("Add", "Sub", "Mul", "Div")


class ConstantsIntoWeights(GraphPass):
    """Remove element-wise constants after linear operators."""

    name = "constants-into-weights"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Absorb what follows a linear operator; a MatMul takes factors only."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, *_AFFINE_OPS):
            sides = split_constant(node)
            linear = made_by(sides[0], *LINEAR_OPS) if sides is not None else None
            if sides is None or linear is None or _is_matmul_bias(node, linear):
                continue
            reason = why_not_linear(linear) or why_shared(graph, linear.outputs[0])
            affine: ChannelAffine | str = reason or _affine_of(
                node, sides[1], channel_axis(linear), output_channels(linear)
            )
            if isinstance(affine, ChannelAffine):
                affine = why_not_after(linear, affine) or affine
            if isinstance(affine, str):
                result.refuse(node, affine)
                continue
            absorb_after(editor, linear, affine)
            editor.replace(node.outputs[0], linear.outputs[0])
            result.rewritten += 1
        return result


class ConstantsBeforeWeights(GraphPass):
    """Remove element-wise constants before linear operators."""

    name = "constants-before-weights"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Absorb what a linear operator alone reads."""
        result = PassResult()
        editor = GraphEditor(graph)
        for linear in live_nodes(graph, *LINEAR_OPS):
            node = made_by(linear.inputs[0], *_AFFINE_OPS)
            sides = split_constant(node) if node is not None else None
            if node is None or sides is None or _is_bias(node):
                continue
            reason = why_not_linear(linear) or why_shared(graph, node.outputs[0])
            if reason is None and linear.attrs.get("transA", 0):
                reason = f"'{linear.name}' reads its input transposed: its channels are the rows"
            affine: ChannelAffine | str = reason or _affine_of(
                node, sides[1], channel_axis(linear), input_channels(linear)
            )
            if isinstance(affine, ChannelAffine):
                affine = why_not_before(linear, affine) or affine
            if isinstance(affine, str):
                result.refuse(node, affine)
                continue
            absorb_before(editor, linear, affine)
            linear.inputs = [sides[0], *list(linear.inputs)[1:]]
            result.rewritten += 1
        return result


class ScaleThroughBias(GraphPass):
    """Move a constant factor from behind a MatMul's bias to before it, where weights take it."""

    name = "scale-through-bias"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite ``(MatMul(x, W) + b) * c`` to ``MatMul(x, W) * c + b * c``."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, "Mul"):
            sides = split_constant(node)
            bias_add = made_by(sides[0], "Add") if sides is not None else None
            inner = split_constant(bias_add) if bias_add is not None else None
            if sides is None or bias_add is None or inner is None:
                continue
            matmul = made_by(inner[0], "MatMul")
            if matmul is None:
                continue
            reason = _why_not_distribute(graph, bias_add, matmul, sides[1], inner[1])
            if reason is not None:
                result.refuse(node, reason)
                continue
            _distribute(editor, node, inner, sides[1])
            result.rewritten += 1
        return result


def _why_not_distribute(
    graph: gs.Graph, bias_add: gs.Node, matmul: gs.Node, factor: gs.Tensor, bias: gs.Tensor
) -> str | None:
    reason = why_not_linear(matmul)
    for tensor in (bias_add.outputs[0], matmul.outputs[0]):
        reason = reason or why_shared(graph, tensor)
    dimensions = rank(matmul.outputs[0])
    if reason is None and dimensions is None:
        reason = f"the rank of '{matmul.outputs[0].name}' is unknown"
    for constant in (factor, bias):
        if reason is None:
            vector = channel_vector(constant, dimensions or 0, -1, output_channels(matmul))
            reason = vector if isinstance(vector, str) else None
    return reason


def _distribute(
    editor: GraphEditor, node: gs.Node, inner: tuple[gs.Tensor, gs.Tensor], factor: gs.Tensor
) -> None:
    product, bias = inner
    factors, offsets = floats(factor), floats(bias)
    if factors is None or offsets is None:
        raise ValueError("ask _why_not_distribute first")
    scaled = editor.add("Mul", [product, factor], like=product)
    new_bias = editor.constant(f"{bias.name}_scaled", offsets * factors, bias.dtype)
    output = node.outputs[0]
    editor.replace(output, editor.add("Add", [scaled, new_bias], like=output))


def _is_bias(node: gs.Node) -> bool:
    """Whether ``node`` is the bias of the MatMul before it: moving it on would only take turns."""
    return node.op == "Add" and any(made_by(tensor, "MatMul") for tensor in node.inputs)


def _is_matmul_bias(node: gs.Node, linear: gs.Node) -> bool:
    """MatMul + Add is the canonical form of a product with bias in more than two dimensions."""
    return bool(node.op == "Add" and linear.op == "MatMul")


def _affine_of(node: gs.Node, constant: gs.Tensor, axis: int, channels: int) -> ChannelAffine | str:
    """Read ``node`` as an affine map of its variable operand, or say why it is none."""
    variable = node.inputs[0] if node.inputs[1] is constant else node.inputs[1]
    dimensions = rank(variable)
    if dimensions is None:
        return f"the rank of '{variable.name}' is unknown"
    vector = channel_vector(constant, dimensions, axis, channels)
    if isinstance(vector, str):
        return vector
    ones, zeros = np.ones(channels), np.zeros(channels)
    constant_first = node.inputs[0] is constant
    if node.op == "Add":
        return ChannelAffine(ones, vector)
    if node.op == "Sub":
        return ChannelAffine(-ones, vector) if constant_first else ChannelAffine(ones, -vector)
    if node.op == "Mul":
        return ChannelAffine(vector, zeros)
    if constant_first:
        return f"'{constant.name}' is divided by '{variable.name}', which is not linear"
    if bool((vector == 0).any()):
        return f"'{constant.name}' divides by zero"
    return ChannelAffine(1.0 / vector, zeros)
