"""Read the values of a TopK at its indices.

    values, indices = TopK(x, k)  ->  indices = TopK(x, k)    values = GatherElements(x, indices)

An operator has one output. Moved by the indices, values are the very elements of x.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import is_graph_output, rank


class RankedValues(Rule[gs.Node]):
    """Give each TopK whose values are read its indices as the only result."""

    name = "ranked-values"
    ops = ("TopK",)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | None:
        """Match a TopK whose values somebody reads."""
        values = node.outputs[0] if node.outputs else None
        if values is None or values.is_empty() or rank(node.inputs[0]) is None:
            return None
        return node if values.outputs or is_graph_output(graph, values) else None

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Gather the values; the indices get a name where they had none."""
        values = match.outputs[0]
        indices = match.outputs[1] if len(match.outputs) > 1 else gs.Variable.empty()
        if indices.is_empty():
            name = editor.new_name(f"{values.name}_indices")
            indices = gs.Variable(name, np.dtype(np.int64), values.shape)
        unread = gs.Variable(editor.new_name(f"{values.name}_unread"), values.dtype, values.shape)
        match.outputs = [unread, indices]
        axis = {"axis": int(match.attrs.get("axis", -1))}
        gathered = editor.add("GatherElements", [match.inputs[0], indices], like=values, attrs=axis)
        editor.replace(values, gathered)
