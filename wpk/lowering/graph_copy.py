"""Copies of graphs whose nodes and functions are their own: passes change both in place."""

from collections.abc import Iterable, Sequence
from itertools import chain

import onnx_graphsurgeon as gs


def copied(graph: gs.Graph) -> gs.Graph:
    """A graph of its own, whose functions are its own, too; weights are shared.

    Functions are copied without the list of all functions that each of them holds: graphsurgeon would merge
    the lists of all in each copy, which takes time with the cube of their number.
    """
    functions = list(graph.functions)
    for each in (graph, *functions):
        each.functions = []  # empties a list that others may share
    try:
        copied = _copied_alone(graph)
        copied.functions = [_copied_alone(function) for function in functions]
    finally:
        graph.functions = functions
    return copied


def _copied_alone(graph: gs.Graph) -> gs.Graph:
    """A graph, or a function, without its functions; graphsurgeon copies each tensor twice."""
    if any(isinstance(value, gs.Graph) for node in graph.nodes for value in node.attrs.values()):
        return graph.copy()
    sides = ((*node.inputs, *node.outputs) for node in graph.nodes)
    tensors = _copies(chain(graph.inputs, graph.outputs, chain.from_iterable(sides)))
    nodes = [
        gs.Node(
            node.op,
            node.name,
            node.attrs.copy(),
            [_copy_of(tensor, tensors) for tensor in node.inputs],
            [_copy_of(tensor, tensors) for tensor in node.outputs],
            node.domain,
        )
        for node in graph.nodes
    ]
    ports = [[_copy_of(t, tensors) for t in side] for side in (graph.inputs, graph.outputs)]
    return _with(graph, nodes, *ports)


def _copies(tensors: Iterable[gs.Tensor]) -> dict[int, gs.Tensor]:
    """A copy of each tensor that has a name, by the identity of the tensor."""
    copies: dict[int, gs.Tensor] = {}
    for tensor in tensors:
        if id(tensor) not in copies and not tensor.is_empty():
            copies[id(tensor)] = tensor.copy()
    return copies


def _copy_of(tensor: gs.Tensor, copies: dict[int, gs.Tensor]) -> gs.Tensor:
    return gs.Variable.empty() if tensor.is_empty() else copies[id(tensor)]


def _with(
    graph: gs.Graph,
    nodes: Sequence[gs.Node],
    inputs: Sequence[gs.Tensor],
    outputs: Sequence[gs.Tensor],
) -> gs.Graph:
    """A graph, or a function, as another one is, of these nodes."""
    if isinstance(graph, gs.Function):
        attrs = dict(graph.attrs)
        own = {"domain": graph.domain, "attrs": attrs}
        kind: type[gs.Graph] = gs.Function
    else:
        own, kind = {}, gs.Graph
    return kind(
        name=graph.name,
        nodes=nodes,
        inputs=inputs,
        outputs=outputs,
        doc_string=graph.doc_string,
        opset=graph.opset,
        import_domains=graph.import_domains,
        ir_version=graph.ir_version,
        **own,
    )
