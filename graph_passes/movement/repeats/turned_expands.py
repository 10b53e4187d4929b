"""Repeat rows after their dimensions have changed their order, not before.

    Transpose(Expand(x, s))  ->  Expand(Transpose(x), s')        x of as many dimensions, s' in the new order

Exact. What reads the Expand element by element repeats x by itself, and the Expand goes (`redundant_movement`).
"""

from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import made_by, rank, static_shape, why_shared
from wpk.graph_passes.movement.chains.reshape_chains import permutation


class _TurnedExpand(NamedTuple):
    """A Transpose, what is repeated before it, and the order."""

    last: gs.Node
    source: gs.Tensor
    perm: list[int]


class TurnedExpands(Rule[_TurnedExpand]):
    """Turn what is repeated rather than its repetition."""

    name = "turned-expands"
    ops = ("Transpose",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _TurnedExpand | Refusal | None:
        """Match a Transpose of what an Expand alone gives it, of known sizes."""
        expand, perm = made_by(node.inputs[0], "Expand"), permutation(node)
        if expand is None or perm is None or static_shape(node.outputs[0]) is None:
            return None
        source = expand.inputs[0]
        if isinstance(source, gs.Constant) or rank(source) != len(perm):
            return None
        return refusal(node, why_shared(graph, node.inputs[0])) or _TurnedExpand(node, source, perm)

    def rewrite(self, editor: GraphEditor, match: _TurnedExpand) -> None:
        """Write the Transpose in front of the Expand."""
        parts, output = NodeParts(editor, match.last), match.last.outputs[0]
        turned, shape = parts.transposed(match.source, match.perm), static_shape(output) or []
        editor.replace(output, parts.add("Expand", turned, parts.ints(shape), like=output))
