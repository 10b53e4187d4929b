"""Part the two results of a MaxPool, since an operator has one.

    y, places = MaxPool(x)  ->  y = MaxPool(x)    unread, places = MaxPool(x)
    y, places = MaxPool(x)  ->  y = MaxPool(x)    where nobody reads the places

Both find the same elements: numbers are compared, and stay what they are.
"""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import is_graph_output


@dataclass(frozen=True)
class _Pool:
    """A MaxPool that names both results, and whether its places are read."""

    node: gs.Node
    places: bool


class PooledPlaces(Rule[_Pool]):
    """Give each MaxPool one result that is read."""

    name = "pooled-places"
    ops = ("MaxPool",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Pool | None:
        """Match a MaxPool that names its places, whose values are read or whose places are not."""
        if len(node.outputs) < 2:
            return None
        values, places = (
            not tensor.is_empty() and (bool(tensor.outputs) or is_graph_output(graph, tensor))
            for tensor in node.outputs
        )
        return _Pool(node, places) if values or not places else None

    def rewrite(self, editor: GraphEditor, match: _Pool) -> None:
        """Leave the places out, or have another node for the values."""
        node, values = match.node, match.node.outputs[0]
        if not match.places:
            node.outputs = [values]
            return
        unread = gs.Variable(editor.new_name(f"{values.name}_unread"), values.dtype, values.shape)
        node.outputs = [unread, node.outputs[1]]
        attributes = {name: each for name, each in node.attrs.items() if name != "storage_order"}
        pooled = editor.add("MaxPool", list(node.inputs), like=values, attrs=attributes)
        editor.replace(values, pooled)
