"""Compute both directions of a recurrent operator by operators of their own.

    LSTM<bidirectional>(x)  ->  LSTM<forward>(x), LSTM<reverse>(x), side by side

Neither reads what the other gives, so that they run at the same time as branches of the graph.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import Dims
from wpk.graph_passes.recurrent.edits import cut, fresh, joined, reshaped, turned
from wpk.graph_passes.recurrent.node import (
    C0,
    DEFAULT_ACTIVATIONS,
    H0,
    LENGTHS,
    OPERATORS,
    RecurrentNode,
    X,
)


class RecurrentDirections(Rule[RecurrentNode]):
    """Split a recurrent operator that goes both ways."""

    name = "recurrent-directions"
    ops = OPERATORS

    def match(self, graph: gs.Graph, node: gs.Node) -> RecurrentNode | Refusal | None:
        """Match both directions."""
        del graph
        if node.attrs.get("direction", "forward") != "bidirectional":
            return None
        read = RecurrentNode.read(node)
        return refusal(node, read) if isinstance(read, str) else read

    def rewrite(self, editor: GraphEditor, match: RecurrentNode) -> None:
        """Write two nodes, and join what they give."""
        node = match.node
        both = [_direction(editor, match, number) for number in range(2)]
        axis = 1 if match.batch_first else 0
        for place, old in enumerate(node.outputs):
            parts = [each[place] for each in both]
            if old.is_empty() or (not old.outputs and not _leaves(editor, old)):
                continue
            if place == 0:
                editor.replace(old, _side_by_side(editor, match, parts))
            else:
                editor.replace(old, joined(editor, parts, axis, f"{old.name}_both"))


def _leaves(editor: GraphEditor, tensor: gs.Tensor) -> bool:
    return any(output is tensor for output in editor.graph.outputs)


def _direction(editor: GraphEditor, match: RecurrentNode, number: int) -> list[gs.Tensor]:
    node, direction = match.node, match.directions[number]
    count = len(DEFAULT_ACTIVATIONS[node.op])
    attrs = {**node.attrs, "direction": direction}
    if "activations" in attrs:
        attrs["activations"] = list(attrs["activations"])[number * count :][:count]
    inputs = []
    for place, tensor in enumerate(node.inputs):
        whole = place in (X, LENGTHS) or tensor.is_empty()
        axis = 1 if place in (H0, C0) and match.batch_first else 0
        name = f"{tensor.name}_{direction}"
        inputs.append(tensor if whole else cut(editor, tensor, axis, number, 1, name))
    outputs = [_like(editor, match, place, direction) for place in range(len(node.outputs))]
    name = editor.new_name(f"{node.name}_{direction}")
    editor.graph.nodes.append(gs.Node(node.op, name, attrs, inputs, outputs))
    return outputs


def _like(editor: GraphEditor, match: RecurrentNode, place: int, direction: str) -> gs.Tensor:
    """An output of one direction."""
    old = match.node.outputs[place]
    if old.is_empty():
        return gs.Variable.empty()
    shape: Dims = list(old.shape)
    shape[_axis(match, place)] = 1
    return fresh(editor, old, shape, f"{old.name}_{direction}")


def _axis(match: RecurrentNode, place: int) -> int:
    """The dimension of the directions."""
    return int(match.batch_first) + int(place == 0)


def _side_by_side(editor: GraphEditor, match: RecurrentNode, parts: list[gs.Tensor]) -> gs.Tensor:
    """All states of both directions; joined along the last dimension, where kernels write them in place."""
    name = f"{match.node.outputs[0].name}_both"
    rows: Dims = [match.batch, match.steps] if match.batch_first else [match.steps, match.batch]
    parts = [reshaped(editor, each, [*rows, match.hidden], f"{each.name}_rows") for each in parts]
    both = joined(editor, parts, 2, name)
    split = reshaped(editor, both, [*rows, 2, match.hidden], f"{name}_split")
    return split if match.batch_first else turned(editor, split, (0, 2, 1, 3), f"{name}_turned")
