"""Put casts and views into the operators that read or write through them.

A cast or view that several operators read is copied into each. Views go where they cost nothing:
into a reader whose every dimension then has one stride in memory, else into the writer.
"""

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from wpk.graph_passes.fusion_clusters import Cluster, Clusters, outside_inputs
from wpk.graph_passes.fusion_rules import VIEWS, is_elementwise, is_widening
from wpk.graph_passes.fusion_views import trace
from wpk.graph_passes.query import is_graph_output, is_op, producer

# Operators whose operands are read through strides anyway, so that views before them go inside
# even when they move nothing: split heads then never appear as values.
_READ_IN_PLACE = ("Gemm", "MatMul")


def absorb_inputs(clusters: Clusters) -> None:
    """Copy the casts and views before each cluster into it."""
    for cluster in clusters.all:
        for node in cluster.nodes:
            for tensor in outside_inputs(node):
                made_here = producer(tensor)
                if made_here is None or clusters.owner.get(id(made_here)) is cluster:
                    continue
                chain = _chain_before(clusters, node, tensor)
                if chain:
                    cluster.chains[id(tensor)] = chain


def _chain_before(clusters: Clusters, node: gs.Node, tensor: gs.Tensor) -> Sequence[gs.Node]:
    """Return the views and then the cast that end in ``tensor``, as far as they can be absorbed."""
    chain: list[gs.Node] = []
    current = producer(tensor)
    if current is not None and is_op(current, "Cast") and id(current) not in clusters.owner:
        chain.insert(0, current)
        current = producer(current.inputs[0])
    cast = list(chain)
    while current is not None and is_op(current, *VIEWS):
        chain.insert(0, current)
        current = producer(current.inputs[0])
    views = chain[: len(chain) - len(cast)]
    if not views:
        return cast
    described = trace(views[0].inputs[0], views)
    if described is None:
        clusters.refuse(node, f"the shapes before '{tensor.name}' are not known")
        return cast
    if not described.reads_strided():
        clusters.refuse(
            node,
            f"'{tensor.name}' cannot be read in place from '{views[0].inputs[0].name}': "
            "a dimension would have no single stride",
        )
        return cast
    wanted = is_op(node, *_READ_IN_PLACE) or described.moves() or bool(cast)
    return chain if wanted else []


def absorb_outputs(clusters: Clusters) -> None:
    """Move views after a cluster into it where their readers did not take them all."""
    absorbed = {key for cluster in clusters.all for key in cluster.chains}
    for cluster in clusters.all:
        chain = _chain_after(clusters, cluster)
        while chain and not _is_needed(clusters, chain, absorbed):
            chain = chain[:-1]
        if not chain:
            continue
        described = trace(cluster.output, chain)
        if described is None or not described.moves():
            continue
        if not described.writes_strided():
            clusters.refuse(
                chain[0],
                f"'{chain[-1].outputs[0].name}' cannot be written in place: "
                "a dimension would have no single stride",
            )
            continue
        clusters.take(cluster, chain)
        cluster.output = chain[-1].outputs[0]


def _chain_after(clusters: Clusters, cluster: Cluster) -> list[gs.Node]:
    """Return the views after a cluster, each the only reader of the one before."""
    chain: list[gs.Node] = []
    tensor = cluster.output
    while len(tensor.outputs) == 1 and not is_graph_output(clusters.graph, tensor):
        reader = tensor.outputs[0]
        if not is_op(reader, *VIEWS) or reader.inputs[0] is not tensor:
            break
        chain.append(reader)
        tensor = reader.outputs[0]
    return chain


def _is_needed(clusters: Clusters, chain: Sequence[gs.Node], absorbed: set[int]) -> bool:
    """Whether somebody reads the chain's result who did not copy the chain."""
    tensor = chain[-1].outputs[0]
    if is_graph_output(clusters.graph, tensor):
        return True
    return any(id(r) not in clusters.owner or id(tensor) not in absorbed for r in tensor.outputs)


def waits_for_readers(clusters: Clusters, node: gs.Node) -> bool:
    """Whether ``node`` is a cast that all its readers will copy, so that it needs no operator."""
    if not is_op(node, "Cast") or is_graph_output(clusters.graph, node.outputs[0]):
        return False
    maker = producer(node.inputs[0])
    if not is_widening(node) and maker is not None and is_elementwise(maker):
        return False
    readers = node.outputs[0].outputs
    return all(id(reader) in clusters.owner for reader in readers)
