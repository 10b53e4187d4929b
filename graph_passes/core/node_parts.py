"""Adding the nodes that stand for one node, whose names begin with its."""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.query import Dims


class NodeParts:
    """Adds the nodes that stand for one node."""

    def __init__(self, editor: GraphEditor, node: gs.Node) -> None:
        self.editor, self.node = editor, node

    def add(
        self,
        op: str,
        *inputs: gs.Tensor,
        shape: Dims,
        like: gs.Tensor | None = None,
        **attributes: object,
    ) -> gs.Tensor:
        """Add a node; its result has the type of the first input, where no other is named."""
        kind, name = like or inputs[0], f"{self.node.name}_{op}"
        return self.editor.add(
            op, list(inputs), like=kind, shape=shape, name=name, attrs=attributes
        )
