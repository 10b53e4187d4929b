"""Move element-wise nodes with scalar operands before the views that they follow.

    Mul(Transpose(Reshape(x)), s)  ->  Transpose(Reshape(Mul(x, s)))

Exact: a view does not change elements. The node then follows what computes ``x`` and can join its
epilogue, and the views reach the operator that reads them (attention scales its split heads).
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.base import GraphPass, PassResult
from wpk.graph_passes.editor import GraphEditor
from wpk.graph_passes.functions import outside_inputs
from wpk.graph_passes.fusion_rules import VIEWS, is_anchor, is_elementwise
from wpk.graph_passes.query import dims, is_op, live_nodes, producer, same_dims, why_shared
from wpk.operators import Rewrite, names

_HOISTED = names(lambda row: Rewrite.BEFORE_VIEWS in row.rewrites)


class HoistOverViews(GraphPass):
    """Swap an element-wise node of one tensor with the chain of views that makes this tensor."""

    name = "hoist-over-views"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Hoist over whole chains; nodes that follow each other are hoisted one after the other."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, *_HOISTED):
            chain = _views_before(node)
            if not chain:
                continue
            reason = _why_not(graph, node, chain)
            if reason is not None:
                result.refuse(node, reason)
                continue
            _hoist(editor, node, chain)
            result.rewritten += 1
        return result


def _views_before(node: gs.Node) -> list[gs.Node]:
    """Return the views that make the only tensor that ``node`` reads, first to last."""
    tensors = list(outside_inputs(node))
    if not is_elementwise(node) or len(tensors) != 1:
        return []
    if not same_dims(dims(tensors[0]), dims(node.outputs[0])):
        return []
    chain: list[gs.Node] = []
    current = producer(tensors[0])
    while current is not None and is_op(current, *VIEWS):
        chain.insert(0, current)
        current = producer(current.inputs[0])
    return chain


def _why_not(graph: gs.Graph, node: gs.Node, chain: list[gs.Node]) -> str | None:
    source = chain[0].inputs[0]
    maker = producer(source)
    if maker is None or not (is_anchor(maker) or is_elementwise(maker)):
        return f"'{source.name}' is not made by an operator that {node.op} could join"
    for tensor in [source, *(view.outputs[0] for view in chain)]:
        shared = why_shared(graph, tensor)
        if shared is not None:
            return shared
    return None


def _hoist(editor: GraphEditor, node: gs.Node, chain: list[gs.Node]) -> None:
    source, last = chain[0].inputs[0], chain[-1].outputs[0]
    output = node.outputs[0]
    computed = gs.Variable(
        editor.new_name(f"{source.name}_{node.op}"), output.dtype, list(source.shape)
    )
    node.inputs = [source if tensor is last else tensor for tensor in node.inputs]
    node.outputs = [computed]
    chain[0].inputs = [computed, *chain[0].inputs[1:]]
    chain[-1].outputs = [output]
    for view in chain[:-1]:
        editor.rename(view.outputs[0], f"{view.outputs[0].name}_{node.op}")
        view.outputs[0].dtype = output.dtype
