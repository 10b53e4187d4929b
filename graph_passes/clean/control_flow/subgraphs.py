"""Nodes inside nodes: walk them, copy them, and let go of what they read.

A subgraph (of an If, a Loop, a Scan) reads tensors of the graph around it by being given the same objects.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import tensors_of

Tensors = dict[int, gs.Tensor]
"""What takes a tensor's place, by the tensor's id."""


def with_nested(nodes: Iterable[gs.Node]) -> Iterator[gs.Node]:
    """Yield nodes, and those of their subgraphs, however deep."""
    for node in nodes:
        yield node
        for inner in node.subgraphs():
            yield from with_nested(inner.nodes)


def tensors_within(nodes: Iterable[gs.Node]) -> Iterator[gs.Tensor]:
    """Yield what nodes and those of their subgraphs read and make, and what the subgraphs are given and give."""
    for node in with_nested(nodes):
        yield from (*node.inputs, *node.outputs)
        for inner in node.subgraphs():
            yield from (*inner.inputs, *inner.outputs)


def detach(graph: gs.Graph) -> None:
    """Make the nodes of a subgraph that is given up read nothing from outside."""
    for node in with_nested(graph.nodes):
        node.inputs.clear()


def name_constants_apart(graph: gs.Graph, body: gs.Graph, new_name: Callable[[str], str]) -> None:
    """Give constants of a subgraph, which copies of its nodes share, names that the graph does not have.

    Args:
        graph: The graph.
        body: The subgraph.
        new_name: Gives each its name, from the old one.
    """
    outside = {id(t) for t in (*graph.inputs, *graph.outputs, *tensors_of(graph.nodes))}
    read = (*tensors_within(body.nodes), *body.outputs)
    for tensor in {id(t): t for t in read if isinstance(t, gs.Constant)}.values():
        if id(tensor) not in outside:
            tensor.name = new_name(tensor.name)


def copy_nodes(
    nodes: Iterable[gs.Node], replaced: Tensors, new_name: Callable[[str], str]
) -> list[gs.Node]:
    """Copy nodes, their subgraphs included; attributes that are no graphs are shared.

    Args:
        nodes: In an order in which they can run.
        replaced: What copies read in a tensor's place; what the copies make is added. Tensors that
            are not in it are read by the copies, too.
        new_name: Gives each new node and tensor its name, from the old one. The copies' tensors keep
            their types; their shapes, which a body may only claim, are left to inference.
    """
    copies = []
    for node in nodes:
        outputs = [_fresh(tensor, None, new_name) for tensor in node.outputs]
        attrs = {
            key: _copy_graph(value, replaced, new_name) if isinstance(value, gs.Graph) else value
            for key, value in node.attrs.items()
        }
        inputs = [_read(tensor, replaced) for tensor in node.inputs]
        replaced.update((id(old), new) for old, new in zip(node.outputs, outputs, strict=True))
        copies.append(
            gs.Node(node.op, new_name(node.name or node.op), attrs, inputs, outputs, node.domain)
        )
    return copies


def _copy_graph(
    graph: gs.Graph, around: Mapping[int, gs.Tensor], new_name: Callable[[str], str]
) -> gs.Graph:
    replaced = dict(around)
    inputs = [_fresh(tensor, tensor.shape, new_name) for tensor in graph.inputs]
    replaced.update((id(old), new) for old, new in zip(graph.inputs, inputs, strict=True))
    nodes = copy_nodes(graph.nodes, replaced, new_name)
    return gs.Graph(
        nodes=nodes,
        inputs=inputs,
        outputs=[_read(tensor, replaced) for tensor in graph.outputs],
        name=graph.name,
        opset=graph.opset,
        import_domains=graph.import_domains,
    )


def _fresh(tensor: gs.Tensor, shape: object, new_name: Callable[[str], str]) -> gs.Variable:
    if tensor.is_empty():
        return gs.Variable.empty()
    return gs.Variable(new_name(tensor.name), tensor.dtype, shape)


def _read(tensor: gs.Tensor, replaced: Mapping[int, gs.Tensor]) -> gs.Tensor:
    return gs.Variable.empty() if tensor.is_empty() else replaced.get(id(tensor), tensor)
