"""Put casts and views into the operators that read or write through them.

A cast or view that several operators read is copied into each; so is what restores quantised tensors. Views go where they cost nothing:
into a reader whose every dimension then has one stride in memory, else into the writer.
"""

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.byte_products import restoration
from wpk.graph_passes.core.functions import outside_inputs
from wpk.graph_passes.core.kinds import (
    MATRIX,
    VIEWS,
    Numbers,
    computes_in_integers,
    is_elementwise,
    is_floating,
    is_widening,
    numbers_of,
)
from wpk.graph_passes.core.query import REDUCTIONS, is_graph_output, is_op, made_by, producer
from wpk.graph_passes.fusion.clusters import Cluster, Clusters, takes_restoration
from wpk.graph_passes.movement.chains.views import Views, trace, views_before

_PRODUCTS = ("Gemm", "MatMul")


def absorb_views(clusters: Clusters) -> None:
    """Put casts and views into their readers, and into the writer what readers cannot take."""
    left_out = _absorb_inputs(clusters)
    _absorb_outputs(clusters)
    written = {id(cluster.output) for cluster in clusters.all}
    for node, tensor, reason in left_out:
        if id(tensor) not in written:
            clusters.refuse(node, reason)


def _absorb_inputs(clusters: Clusters) -> list[tuple[gs.Node, gs.Tensor, str]]:
    """Copy the casts and views before each cluster into it; return what could not be, and why."""
    left_out = []
    for cluster in clusters.all:
        for node in cluster.nodes:
            for tensor in outside_inputs(node):
                made_here = producer(tensor)
                if made_here is None or clusters.owner.get(id(made_here)) is cluster:
                    continue
                chain, reason = _chain_before(clusters, cluster, node, tensor)
                if chain:
                    cluster.chains[tensor.name] = chain
                if reason is not None:
                    left_out.append((node, tensor, reason))
    return left_out


def _chain_before(
    clusters: Clusters, cluster: Cluster, node: gs.Node, tensor: gs.Tensor
) -> tuple[Sequence[gs.Node], str | None]:
    """Return the views and then the cast, or restoration, that end in ``tensor``, and why the views stay outside."""
    maker = made_by(tensor, "Cast")
    cast = [maker] if maker is not None and id(maker) not in clusters.owner else []
    cast = cast if all(_may_read(node, each) for each in cast) else []
    if not cast and takes_restoration(node):
        cast = _restoration(clusters, tensor)
    views = views_before(cast[0].inputs[0] if cast else tensor)
    if not views:
        return cast, None
    source = views[0].inputs[0]
    described = trace(source, views)
    if described is None:
        return cast, f"the shapes between '{source.name}' and '{tensor.name}' are not known"
    if not described.reads_strided():
        return cast, (
            f"'{tensor.name}' cannot be read in place from '{source.name}': "
            "a dimension would have no single stride"
        )
    reason = described.why_too_many() or _why_no_batch(node, tensor, described)
    if reason is not None:
        return cast, reason
    wanted = _reads_in_place(cluster, node) or described.moves() or bool(cast)
    return ([*views, *cast] if wanted else []), None


def _reads_in_place(cluster: Cluster, node: gs.Node) -> bool:
    """Whether ``node`` is read through strides anyway, so that views before it go inside even where they move nothing.

    Split heads, and halves of channels that are added, then never appear as values.
    """
    anchor = cluster.anchor
    return is_op(node, *_PRODUCTS) or (anchor is not None and is_op(anchor, *REDUCTIONS))


def _why_no_batch(node: gs.Node, tensor: gs.Tensor, views: Views) -> str | None:
    """Say why a product cannot read its matrices in place: their batch has more axes than kernels walk."""
    foldings = views.foldings() if is_op(node, "MatMul") else None
    if foldings is None:
        return None
    first, second = node.inputs
    if tensor is first and isinstance(second, gs.Constant) and views.joins_rows():
        return None
    other = views_before(first) if tensor is second else []
    beside = trace(other[0].inputs[0], other) if other else None
    common = beside.foldings() if beside is not None else None
    if foldings if common is None else foldings & common:
        return None
    return f"the batch of '{tensor.name}' has no two axes with a stride each"


def _may_read(node: gs.Node, cast: gs.Node) -> bool:
    """Whether a node may read through a cast.

    Not integers, which it computes with, through one from floats; nor through one from or to fp64 unless it
    computes in that, and is no product, whose factors lie in memory as they are multiplied.
    """
    if Numbers.FP64 in (numbers_of(cast), numbers_of(node)):
        return numbers_of(cast) is numbers_of(node) and not is_op(node, *MATRIX)
    return not (computes_in_integers(node) and is_floating(cast.inputs[0]))


def _absorb_outputs(clusters: Clusters) -> None:
    """Move views after a cluster into it where their readers did not take them all."""
    for cluster in clusters.all:
        chain = _chain_after(clusters, cluster)
        last = chain[-1].outputs[0] if chain else cluster.output
        if not chain or not _is_needed(clusters, last, last):
            continue
        described = trace(cluster.output, chain)
        if described is None or not described.moves():
            continue
        reason = described.why_too_many()
        if not described.writes_strided():
            name = chain[-1].outputs[0].name
            reason = f"'{name}' cannot be written in place: a dimension would have no single stride"
        if reason is not None:
            clusters.refuse(chain[0], reason)
            continue
        clusters.extend(cluster, chain)


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


def _is_needed(clusters: Clusters, wanted: gs.Tensor, tensor: gs.Tensor) -> bool:
    """Whether somebody reads ``wanted``, through views and casts up to ``tensor``, who did not copy what makes it."""
    if is_graph_output(clusters.graph, tensor):
        return True
    for reader in tensor.outputs:
        owner = clusters.owner.get(id(reader))
        chain = owner.chains.get(tensor.name, ()) if owner is not None else ()
        if any(link.outputs[0] is wanted for link in chain):
            continue
        if owner is not None or not is_op(reader, *VIEWS, "Cast"):
            return True
        if _is_needed(clusters, wanted, reader.outputs[0]):
            return True
    return False


def waits_for_readers(clusters: Clusters, node: gs.Node) -> bool:
    """Whether ``node`` is of a cast or a restoration that all its readers will copy, so that it needs no operator."""
    if is_graph_output(clusters.graph, node.outputs[0]):
        return False
    readers = node.outputs[0].outputs
    if not is_op(node, "Cast"):
        if not _restoration(clusters, node.outputs[0]):
            return False
        return all(
            _takes(clusters, reader) or waits_for_readers(clusters, reader) for reader in readers
        )
    maker = producer(node.inputs[0])
    if not is_widening(node) and maker is not None and is_elementwise(maker):
        return False
    return all(
        (id(each) in clusters.owner and _may_read(each, node)) or _restores(clusters, each)
        for each in readers
    )


def _restoration(clusters: Clusters, tensor: gs.Tensor) -> list[gs.Node]:
    """What restores ``tensor`` from bytes; nothing where an operator holds some of it."""
    links = restoration(tensor)
    return [] if any(id(each) in clusters.owner for each in links) else links


def _takes(clusters: Clusters, reader: gs.Node) -> bool:
    return id(reader) in clusters.owner and takes_restoration(reader)


def _restores(clusters: Clusters, node: gs.Node) -> bool:
    return not is_op(node, "Cast") and waits_for_readers(clusters, node)
