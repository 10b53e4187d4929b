"""Look up an index once that is repeated afterwards.

    Gather(table, Expand(i, t))  ->  Expand(Gather(table, i), Concat(t, [1, ...]))

of constants: what is repeated over a free batch becomes a constant that is, such as the embedding of
token types that an exporter fills in.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import Dims, dims, made_by, rank, static_shape


class ExpandBehindGather(Rule[gs.Node]):
    """Move an Expand of a constant index behind the Gather from a constant."""

    name = "expand-behind-gather"
    ops = ("Gather",)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | None:
        """Match a Gather along the first axis."""
        table = node.inputs[0]
        expand = made_by(node.inputs[1], "Expand")
        if expand is None or node.attrs.get("axis", 0) != 0 or not isinstance(table, gs.Constant):
            return None
        target = dims(expand.inputs[1])
        known = target is not None and len(target) == 1 and target[0] == rank(node.inputs[1])
        return node if known and isinstance(expand.inputs[0], gs.Constant) else None

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write the Gather of the constants, and the Expand behind it."""
        table, output = match.inputs[0], match.outputs[0]
        index, target = match.inputs[1].inputs[0].inputs
        rest: Dims = list((static_shape(table) or [])[1:])
        shape: Dims = [*(static_shape(index) or []), *rest]
        row = editor.add("Gather", [table, index], like=output, shape=shape, attrs=match.attrs)
        sizes = gs.Variable(f"{output.name}_sizes", np.dtype(np.int64))
        if rest:
            ones = editor.constant(f"{output.name}_ones", np.ones(len(rest), np.int64))
            count = (rank(match.inputs[1]) or 0) + len(rest)
            attrs = {"axis": 0}
            target = editor.add("Concat", [target, ones], like=sizes, shape=[count], attrs=attrs)
        editor.replace(output, editor.add("Expand", [row, target], like=output))
