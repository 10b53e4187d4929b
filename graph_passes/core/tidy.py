"""Remove what no output needs, and put nodes in an order in which they can run.

graphsurgeon's own versions recurse as deep as the graph and compare nodes by value; these go by
identity, keep the order of independent nodes, and leave local functions alone.
"""

import heapq
from collections.abc import Iterator

import onnx_graphsurgeon as gs

from wpk.errors import GraphError


def read_tensors(node: gs.Node) -> Iterator[gs.Tensor]:
    """Yield the tensors that ``node`` reads, those of its subgraphs (If, Loop) included."""
    yield from node.inputs
    for subgraph in node.attrs.values():
        if not isinstance(subgraph, gs.Graph):
            continue
        yield from subgraph.outputs
        for inner in subgraph.nodes:
            yield from read_tensors(inner)


def remove_dead_nodes(graph: gs.Graph) -> int:
    """Remove the nodes that no graph output depends on; return how many there were."""
    own = {id(node) for node in graph.nodes}
    needed: set[int] = set()
    waiting = [node for tensor in graph.outputs for node in tensor.inputs]
    while waiting:
        node = waiting.pop()
        if id(node) in needed or id(node) not in own:
            continue
        needed.add(id(node))
        waiting.extend(producer for t in read_tensors(node) for producer in t.inputs)
    dead = [node for node in graph.nodes if id(node) not in needed]
    graph.nodes = [node for node in graph.nodes if id(node) in needed]
    _detach(dead)
    return len(dead)


def _detach(nodes: list[gs.Node]) -> None:
    """Take nodes from their tensors, each tensor once: one may have a thousand readers, and so many die together."""
    gone = {id(node) for node in nodes}
    tensors = {id(tensor): tensor for node in nodes for tensor in (*node.inputs, *node.outputs)}
    for tensor in tensors.values():
        for linked in (tensor.inputs, tensor.outputs):
            kept = [node for node in linked if id(node) not in gone]
            list.clear(linked)  # past graphsurgeon's lists, which look for each of the others
            list.extend(linked, kept)
    for node in nodes:
        list.clear(node.inputs)
        list.clear(node.outputs)


def sort_nodes(graph: gs.Graph) -> None:
    """Sort the nodes so that each comes after those it reads from.

    Among nodes that could come next the one that stood first comes first, so a sorted graph keeps
    its order exactly.

    Raises:
        GraphError: The graph has a cycle.
    """
    position = {id(node): index for index, node in enumerate(graph.nodes)}
    waits: list[int] = []
    readers: list[list[int]] = [[] for _ in graph.nodes]
    for index, node in enumerate(graph.nodes):
        producers = {
            position[id(producer)]
            for tensor in read_tensors(node)
            for producer in tensor.inputs
            if id(producer) in position
        }
        waits.append(len(producers))
        for producer in producers:
            readers[producer].append(index)
    ready = [index for index, count in enumerate(waits) if count == 0]
    heapq.heapify(ready)
    order: list[gs.Node] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(graph.nodes[index])
        for reader in readers[index]:
            waits[reader] -= 1
            if waits[reader] == 0:
                heapq.heappush(ready, reader)
    if len(order) != len(waits):
        stuck = sorted(graph.nodes[i].name for i, count in enumerate(waits) if count > 0)
        raise GraphError(
            f"the graph has a cycle through nodes {', '.join(stuck[:5])}",
            fix="export the model again: an ONNX graph must not have cycles",
        )
    graph.nodes = order
