"""Replace an If whose condition is constant by the branch that it takes.

    If(true) { then: y = f(x) } { else: y = g(x) }   ->   y = f(x)

What the branch reads from outside it reads on; names of the branch that are taken are made new. A
result that the branch only passes on becomes an Identity, which later passes remove.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.control_flow.subgraphs import detach
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.query import tensors_of, values


class InlineConditionals(Rule[tuple[gs.Node, str]]):
    """Inline the branch that is known to be taken; an If inside it waits for the next round."""

    name = "inline-conditionals"
    ops = ("If",)

    def match(self, graph: gs.Graph, node: gs.Node) -> tuple[gs.Node, str] | Refusal:
        """Say which branch is taken; an If whose condition is not known yet stays."""
        condition = values(node.inputs[0])
        if condition is None or condition.size != 1:
            return Refusal(node.name, f"its condition '{node.inputs[0].name}' is not constant")
        return node, "then_branch" if bool(condition.reshape(())) else "else_branch"

    def rewrite(self, editor: GraphEditor, match: tuple[gs.Node, str]) -> None:
        """Put the branch's nodes into the graph."""
        node, taken = match
        branch = node.attrs[taken]
        graph = editor.graph
        outside = {id(t) for t in (*graph.inputs, *graph.outputs, *tensors_of(graph.nodes))}
        for name, other in node.attrs.items():
            if name != taken and isinstance(other, gs.Graph):
                detach(other)
        own = {
            id(t): t for t in tensors_of(branch.nodes) if id(t) not in outside and not t.is_empty()
        }
        for tensor in own.values():
            tensor.name = editor.new_name(tensor.name)
        for inner in branch.nodes:
            inner.name = editor.new_name(inner.name or f"{node.name}_{inner.op}")
        outputs = list(node.outputs)
        node.attrs.clear()
        node.inputs.clear()
        node.outputs.clear()
        graph.nodes.extend(list(branch.nodes))
        for result, output in zip(branch.outputs, outputs, strict=True):
            name = editor.new_name(f"{output.name}_Identity")
            graph.nodes.append(gs.Node("Identity", name, {}, [result], [output]))
