"""Give OneHot its indices as integers.

    OneHot(x, depth, values), x floating point  ->  OneHot(Cast(x), depth, values)

ONNX says that they are cast; models converted from other frameworks write them so.
"""

import onnx
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.kinds import is_floating


class WholeIndices(Rule[gs.Node]):
    """Cast the indices of each OneHot that are floating point."""

    name = "whole-indices"
    ops = ("OneHot",)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | None:
        """Match a OneHot of numbers."""
        del graph
        return node if is_floating(node.inputs[0]) else None

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write the Cast in front."""
        given, *others = match.inputs
        attrs = {"to": int(onnx.TensorProto.INT64)}
        whole = editor.add("Cast", [given], like=given, attrs=attrs)
        whole.dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.INT64)
        match.inputs = [whole, *others]
