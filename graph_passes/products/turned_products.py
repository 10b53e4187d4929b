"""Multiply from the left where products work on transposed matrices between two Transposes.

    Transpose(MatMul(f(MatMul(Transpose(x), v)), w))  ->  MatMul(w', f(MatMul(v', x)))     v', w' transposed

Exact: the same terms are summed. MLP-Mixer mixes the tokens of an image so. Both products then read and write
rows as they lie, and what is added behind the second Transpose is added by the last product.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.kinds import is_elementwise
from wpk.graph_passes.core.query import dims, is_op, made_by, rank, why_any_shared
from wpk.graph_passes.movement.chains.reshape_chains import permutation

_MOST_NODES = 24


@dataclass(frozen=True)
class _Turned:
    """Nodes between two Transposes.

    Attributes:
        source: What the first one reads.
        nodes: Products with constants, and element-wise nodes of one variable; the first is a product.
        last: The second Transpose.
    """

    source: gs.Tensor
    nodes: tuple[gs.Node, ...]
    last: gs.Node


class TurnedProducts(Rule[_Turned]):
    """Leave the matrices of a chain of products as they lie."""

    name = "turned-products"
    ops = ("MatMul",)
    is_choice = True
    choice_words = "products between two Transposes multiply from the left"

    def decided_over(self, match: _Turned) -> Sequence[gs.Node]:
        """Return the products, what is between them and the last Transpose."""
        return *match.nodes, match.last

    def match(self, graph: gs.Graph, node: gs.Node) -> _Turned | Refusal | None:
        """Match the first product; where its result is turned back behind nodes of one variable only."""
        turn = made_by(node.inputs[0], "Transpose")
        if turn is None or not _swaps_matrix(turn) or not _is_product(node):
            return None
        nodes = [node]
        while len(nodes) < _MOST_NODES:
            output = nodes[-1].outputs[0]
            readers = {id(reader): reader for reader in output.outputs}
            following = next(iter(readers.values()), None)
            if following is None or len(readers) != 1:
                return None
            if is_op(following, "Transpose") and _swaps_matrix(following):
                reason = why_any_shared(graph, [each.outputs[0] for each in nodes])
                return refusal(node, reason) or _Turned(turn.inputs[0], tuple(nodes), following)
            if not _is_product(following) and not _is_of_rows(following, output):
                return None
            nodes.append(following)
        return None

    def rewrite(self, editor: GraphEditor, match: _Turned) -> None:
        """Write each node again, for matrices that are not turned."""
        before, now = match.nodes[0].inputs[0], match.source
        for node in match.nodes:
            shape = list(dims(node.outputs[0]) or [])
            shape[-2:] = shape[:-3:-1]
            inputs = [now if t is before else _column(editor, t, node) for t in node.inputs]
            inputs = inputs[::-1] if is_op(node, "MatMul") else inputs
            before = node.outputs[0]
            now = editor.add(node.op, inputs, like=before, shape=shape, attrs=dict(node.attrs))
        editor.replace(match.last.outputs[0], now)


def _swaps_matrix(node: gs.Node) -> bool:
    """Whether a Transpose turns each matrix, and nothing else."""
    perm = permutation(node)
    if perm is None or len(perm) < 2:
        return False
    size = len(perm)
    return list(perm) == [*range(size - 2), size - 1, size - 2]


def _is_product(node: gs.Node) -> bool:
    """Whether a node multiplies a tensor with a constant matrix."""
    if not is_op(node, "MatMul") or isinstance(node.inputs[0], gs.Constant):
        return False
    return isinstance(node.inputs[1], gs.Constant) and rank(node.inputs[1]) == 2


def _is_of_rows(node: gs.Node, tensor: gs.Tensor) -> bool:
    """Whether a node computes element by element of ``tensor`` and constants that are the same in every row."""
    if not is_elementwise(node) or dims(node.outputs[0]) != dims(tensor):
        return False
    others = [each for each in node.inputs if each is not tensor and not each.is_empty()]
    return all(
        isinstance(each, gs.Constant) and all(size == 1 for size in (each.shape or ())[:-1])
        for each in others
    )


def _column(editor: GraphEditor, tensor: gs.Tensor, node: gs.Node) -> gs.Tensor:
    """A constant for matrices that are not turned: a matrix turned, a row as a column."""
    if not isinstance(tensor, gs.Constant) or int(np.prod(tensor.shape)) == 1:
        return tensor
    name = editor.new_name(f"{tensor.name}_turned")
    if is_op(node, "MatMul"):
        return moved_constant(name, tensor, np.transpose)
    return moved_constant(name, tensor, lambda array: array.reshape(-1, 1))
