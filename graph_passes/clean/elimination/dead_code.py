"""Remove what nothing reads: nodes, optional outputs, local functions.

Every pass removes the nodes it leaves dead; this one also sees what came with the model.
"""

import onnx
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphPass, PassResult
from wpk.graph_passes.core.query import ONNX_DOMAINS, is_graph_output
from wpk.graph_passes.core.tidy import remove_dead_nodes


class DeadCode(GraphPass):
    """Remove nodes, trailing optional outputs and functions that no graph output depends on."""

    name = "dead-code"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Remove; the count is that of nodes, outputs and functions together."""
        removed = remove_dead_nodes(graph)
        for node in graph.nodes:
            removed += _drop_outputs(graph, node)
        return PassResult(rewritten=removed + _drop_functions(graph))


def _drop_outputs(graph: gs.Graph, node: gs.Node) -> int:
    """Drop unread trailing outputs that the operator's schema lets be absent."""
    if node.domain not in ONNX_DOMAINS:
        return 0
    schema = onnx.defs.get_schema(node.op, graph.opset, "")
    outputs = list(node.outputs)
    if schema.outputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic:
        return 0  # Split and its like: the number of outputs is part of the meaning
    while len(outputs) > schema.min_output:
        last = outputs[-1]
        if not last.is_empty() and (last.outputs or is_graph_output(graph, last)):
            break
        outputs.pop()
    dropped = len(node.outputs) - len(outputs)
    if dropped:
        node.outputs = outputs
    return dropped


def _drop_functions(graph: gs.Graph) -> int:
    used: set[tuple[str, str]] = set()
    waiting = list(graph.nodes)
    functions = {(function.domain, function.name): function for function in graph.functions}
    while waiting:
        node = waiting.pop()
        key = (node.domain or "", node.op)
        if key in functions and key not in used:
            used.add(key)
            waiting.extend(functions[key].nodes)
        for subgraph in node.subgraphs():
            waiting.extend(subgraph.nodes)
    unused = len(functions) - len(used)
    if unused:
        graph.functions = [f for key, f in functions.items() if key in used]
    return unused
