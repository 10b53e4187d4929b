"""Move element-wise nodes with scalar operands before the views that they follow.

    Mul(Transpose(Reshape(x)), s)  ->  Transpose(Reshape(Mul(x, s)))

Exact: a view does not change elements. The node then follows what computes ``x`` and can join its
epilogue, and the views reach the operator that reads them (attention scales its split heads).
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.byte_products import multiplies_bytes
from wpk.graph_passes.core.functions import outside_inputs
from wpk.graph_passes.core.kinds import is_anchor, is_elementwise, is_widening
from wpk.graph_passes.core.query import dims, producer, same_dims, why_any_shared
from wpk.graph_passes.fusion.casts_before_joins import is_only_given
from wpk.graph_passes.movement.chains.views import views_before
from wpk.operators import Rewrite, names


class HoistOverViews(Rule[tuple[gs.Node, list[gs.Node]]]):
    """Swap an element-wise node of one tensor with the chain of views that makes this tensor.

    Nodes that follow each other are hoisted one after the other, over whole chains.
    """

    name = "hoist-over-views"
    ops = names(lambda row: Rewrite.BEFORE_VIEWS in row.rewrites)

    def match(
        self, graph: gs.Graph, node: gs.Node
    ) -> tuple[gs.Node, list[gs.Node]] | Refusal | None:
        """Match a node behind views."""
        chain = _views_read(node)
        if not chain:
            return None
        reason = _why_not(graph, node, chain)
        return refusal(node, reason) or (node, chain)

    def rewrite(self, editor: GraphEditor, match: tuple[gs.Node, list[gs.Node]]) -> None:
        """Compute first, then view."""
        node, chain = match
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


def _views_read(node: gs.Node) -> list[gs.Node]:
    """Return the views that make the only tensor that ``node`` reads, first to last."""
    tensors = list(outside_inputs(node))
    if not is_elementwise(node) or len(tensors) != 1:
        return []
    return views_before(tensors[0]) if same_dims(dims(tensors[0]), dims(node.outputs[0])) else []


def _may_follow(reader: gs.Node) -> bool:
    """Whether ``reader`` computes on one tensor alone, so that it can be hoisted next."""
    return is_elementwise(reader) and len(list(outside_inputs(reader))) == 1


def _why_not(graph: gs.Graph, node: gs.Node, chain: list[gs.Node]) -> str | None:
    source = chain[0].inputs[0]
    if any(map(multiplies_bytes, node.outputs[0].outputs)):
        return f"'{source.name}' holds bytes, which a product takes as they lie"
    follows = is_only_given(graph, node.outputs[0]) or all(
        map(_may_follow, node.outputs[0].outputs)
    )
    if is_widening(node) and not follows:
        return f"the readers of '{node.outputs[0].name}' widen what they read themselves"
    maker = producer(source)
    if maker is None or not (is_anchor(maker) or is_elementwise(maker)):
        return f"'{source.name}' is not made by an operator that {node.op} could join"
    return why_any_shared(graph, [source, *(view.outputs[0] for view in chain)])
