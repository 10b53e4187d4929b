"""Absorb element-wise constants into the weights and the bias of the linear operator beside them.

    L(x) op c    ->  L'(x)              op: +, -, *, / by a scalar or by one number per channel
    L(x op c)    ->  L'(x)              + and - only where no zero padding stands between
    (y + b) * c  ->  y * c + b * c      y made by a MatMul, whose bias is an Add behind it

`wpk.graph_passes.fold.linear_operator` states the algebra on the weights.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import (
    floats,
    made_by,
    rank,
    split_constant,
    why_shared,
)
from wpk.graph_passes.fold.linear_operator import (
    LINEAR_OPS,
    AbsorbBehind,
    AbsorbInFront,
    ChannelAffine,
    Neighbours,
    channel_axis,
    channel_vector,
    input_channels,
    output_channels,
    why_not_after,
    why_not_before,
    why_not_in_front,
    why_not_linear,
)

_AFFINE_OPS = ("Add", "Sub", "Mul", "Div")


class ConstantsIntoWeights(AbsorbBehind):
    """Remove element-wise constants after linear operators."""

    name = "constants-into-weights"
    ops = _AFFINE_OPS

    def match(self, graph: gs.Graph, node: gs.Node) -> Neighbours | Refusal | None:
        """Match what follows a linear operator; a MatMul takes factors only."""
        sides = split_constant(node)
        linear = made_by(sides[0], *LINEAR_OPS) if sides is not None else None
        if sides is None or linear is None or _is_matmul_bias(node, linear):
            return None
        reason = why_not_linear(linear) or why_shared(graph, linear.outputs[0])
        if reason is not None:
            return Refusal(node.name, reason)
        affine = _affine_of(node, sides[1], channel_axis(linear), output_channels(linear))
        if isinstance(affine, Refusal):
            return affine
        reason = why_not_after(linear, affine)
        return refusal(node, reason) or Neighbours(node, sides[0], linear, affine)


class ConstantsBeforeWeights(AbsorbInFront):
    """Remove element-wise constants before linear operators."""

    name = "constants-before-weights"
    ops = LINEAR_OPS

    def match(self, graph: gs.Graph, node: gs.Node) -> Neighbours | Refusal | None:
        """Match what a linear operator alone reads."""
        before = made_by(node.inputs[0], *_AFFINE_OPS)
        sides = split_constant(before) if before is not None else None
        if before is None or sides is None or _is_bias(before):
            return None
        reason = why_not_in_front(graph, node, before.outputs[0])
        if reason is not None:
            return Refusal(before.name, reason)
        affine = _affine_of(before, sides[1], channel_axis(node), input_channels(node))
        if isinstance(affine, Refusal):
            return affine
        reason = why_not_before(node, affine)
        return refusal(before, reason) or Neighbours(before, sides[0], node, affine)


@dataclass(frozen=True)
class _BiasedProduct:
    """``(product + bias) * factor``, whose last node is ``node``."""

    node: gs.Node
    product: gs.Tensor
    bias: gs.Tensor
    factor: gs.Tensor


class ScaleThroughBias(Rule[_BiasedProduct]):
    """Move a constant factor from behind a MatMul's bias to before it, where weights take it."""

    name = "scale-through-bias"
    ops = ("Mul",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _BiasedProduct | Refusal | None:
        """Match ``(MatMul(x, W) + b) * c``."""
        sides = split_constant(node)
        bias_add = made_by(sides[0], "Add") if sides is not None else None
        inner = split_constant(bias_add) if bias_add is not None else None
        if sides is None or bias_add is None or inner is None:
            return None
        matmul = made_by(inner[0], "MatMul")
        if matmul is None:
            return None
        reason = why_not_linear(matmul)
        reason = reason or why_shared(graph, bias_add.outputs[0])
        reason = reason or why_shared(graph, matmul.outputs[0])
        dimensions = rank(matmul.outputs[0])
        if reason is None and dimensions is None:
            reason = f"the rank of '{matmul.outputs[0].name}' is unknown"
        if reason is not None:
            return Refusal(node.name, reason)
        for constant in (sides[1], inner[1]):
            vector = channel_vector(node, constant, dimensions or 0, -1, output_channels(matmul))
            if isinstance(vector, Refusal):
                return vector
        return _BiasedProduct(node, inner[0], inner[1], sides[1])

    def rewrite(self, editor: GraphEditor, match: _BiasedProduct) -> None:
        """Write ``MatMul(x, W) * c + b * c``."""
        product, bias = match.product, match.bias
        factors, offsets = floats(match.factor), floats(bias)
        if factors is None or offsets is None:
            raise ValueError("`match` looked whether both are constants")
        scaled = editor.add("Mul", [product, match.factor], like=product)
        new_bias = editor.constant(f"{bias.name}_scaled", offsets * factors, bias.dtype)
        output = match.node.outputs[0]
        editor.replace(output, editor.add("Add", [scaled, new_bias], like=output))


def _is_bias(node: gs.Node) -> bool:
    """Whether ``node`` is the bias of the MatMul before it: moving it on would only take turns."""
    return node.op == "Add" and any(made_by(tensor, "MatMul") for tensor in node.inputs)


def _is_matmul_bias(node: gs.Node, linear: gs.Node) -> bool:
    """MatMul + Add is the canonical form of a product with bias in more than two dimensions."""
    return bool(node.op == "Add" and linear.op == "MatMul")


def _affine_of(
    node: gs.Node, constant: gs.Tensor, axis: int, channels: int
) -> ChannelAffine | Refusal:
    """Read ``node`` as an affine map of its variable operand, or say why it is none."""
    variable = node.inputs[0] if node.inputs[1] is constant else node.inputs[1]
    dimensions = rank(variable)
    if dimensions is None:
        return Refusal(node.name, f"the rank of '{variable.name}' is unknown")
    vector = channel_vector(node, constant, dimensions, axis, channels)
    if isinstance(vector, Refusal):
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
        reason = f"'{constant.name}' is divided by '{variable.name}', which is not linear"
        return Refusal(node.name, reason)
    if bool((vector == 0).any()):
        return Refusal(node.name, f"'{constant.name}' divides by zero")
    return ChannelAffine(1.0 / vector, zeros)
