"""Let the weights of an attention come first in their product.

    MatMul(v, Transpose(p))  ->  Transpose(MatMul(p, Transpose(v)))     p = Softmax(...)

Exact: the same terms are summed. LeViT (Graham et al. 2021) and EfficientViT (Liu et al. 2023) write attention so where
convolutions give its values, whose channels come first. Both products and the softmax are then in the order in which they
become one operator (`fuse-operators`), and the two other transposes are views of what convolutions make and read.
"""

from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import dims, made_by, rank, why_any_shared
from wpk.graph_passes.movement.chains.reshape_chains import permutation


class _Weighted(NamedTuple):
    """A product, and the softmax whose transposed result is its second factor."""

    product: gs.Node
    softmax: gs.Node


class TurnedWeights(Rule[_Weighted]):
    """Turn values and result instead of the weights."""

    name = "turned-weights"
    ops = ("MatMul",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Weighted | Refusal | None:
        """Match a product with the transposed result of a softmax that nothing else reads."""
        values = node.inputs[0]
        turn = made_by(node.inputs[1], "Transpose")
        softmax = made_by(turn.inputs[0], "Softmax") if turn is not None else None
        if turn is None or softmax is None or permutation(turn) != _swap(rank(node.inputs[1])):
            return None
        if rank(values) != rank(node.inputs[1]) or isinstance(values, gs.Constant):
            return None
        if any(dims(tensor) is None for tensor in (values, node.outputs[0])):
            return None
        reason = why_any_shared(graph, (turn.outputs[0], softmax.outputs[0]))
        return refusal(node, reason) or _Weighted(node, softmax)

    def rewrite(self, editor: GraphEditor, match: _Weighted) -> None:
        """Write the product the other way round."""
        product, output = NodeParts(editor, match.product), match.product.outputs[0]
        perm = _swap(rank(output))
        shape = [output.shape[axis] for axis in perm]
        turned = product.transposed(match.product.inputs[0], perm)
        summed = product.add("MatMul", match.softmax.outputs[0], turned, like=output, shape=shape)
        editor.replace(output, product.transposed(summed, perm))


def _swap(dimensions: int | None) -> list[int]:
    """The permutation that turns each matrix."""
    axes = list(range(dimensions or 0))
    return [*axes[:-2], *axes[:-3:-1]]
