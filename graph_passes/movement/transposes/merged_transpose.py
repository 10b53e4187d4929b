"""Turn matrices where they lie, not in a shape in which their batch is one dimension.

    Reshape(Transpose(Reshape(x, [-1, s, d]), (0, 2, 1)), [b, h, d, s])  ->  Transpose(x, (0, 1, 3, 2))

of x: [b, h, s, d]. torch writes the keys of an attention so. Fixed sizes are views anyway; of free ones
a Reshape says less than a Transpose.
"""

from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import Dims, dims, made_by
from wpk.graph_passes.core.sizes import known_sizes, reshaped_sizes


class _Turn(NamedTuple):
    """The last Reshape, and what the first one reads."""

    last: gs.Node
    source: gs.Tensor


class MergedTranspose(Rule[_Turn]):
    """Replace a Transpose between two Reshapes that merge and part a batch."""

    name = "merged-transpose"
    ops = ("Reshape",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Turn | None:
        """Match three nodes whose sizes show it."""
        del graph
        turn = made_by(node.inputs[0], "Transpose")
        first = made_by(turn.inputs[0], "Reshape") if turn is not None else None
        if turn is None or first is None or list(turn.attrs.get("perm", ())) != [0, 2, 1]:
            return None
        source = first.inputs[0]
        own, merged = known_sizes(dims(source)), reshaped_sizes(first)
        if own is None or merged is None or len(own) < 3 or len(merged) != 3:
            return None
        parted = reshaped_sizes(node, (merged[0], merged[2], merged[1]))
        turned = (*own[:-2], own[-1], own[-2])
        return _Turn(node, source) if merged[1:] == own[-2:] and parted == turned else None

    def rewrite(self, editor: GraphEditor, match: _Turn) -> None:
        """Write the Transpose."""
        shape: Dims = list(dims(match.source) or [])
        count = len(shape)
        order = [*range(count - 2), count - 1, count - 2]
        output = match.last.outputs[0]
        turned = editor.add(
            "Transpose",
            [match.source],
            like=output,
            shape=[shape[axis] for axis in order],
            attrs={"perm": order},
        )
        editor.replace(output, turned)
