"""Put a normalisation of rows into the products that alone read them.

    Norm(x) @ W  ->  one function of both      Norm: LayerNormalization or RMSNormalization, without parameters

`NormIntoProduct` has moved the parameters into the weights. A product's kernel reads x itself, takes each row's
mean and mean square from the tiles that it multiplies, and applies both to its sums. Several products get a copy
each, as they do of a cast. All blocks that have a part of a row look at all of it, which is why it competes
with a kernel that normalises once; and with a product in front that stores the rows' moments (`row_moments`).
"""

from collections.abc import Iterator

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import is_graph_output, is_op, rank
from wpk.graph_passes.fusion.clusters import Cluster, Clusters
from wpk.graph_passes.fusion.made_for import rounds, stored_type
from wpk.graph_passes.products.normed_rows import NORMS, is_bare, keeps_rows, why_no_rows

NAME = "normed_product"

NORMED = "products normalise the rows that they read"


def join_normed_products(clusters: Clusters) -> None:
    """Put every normalisation that products alone read into these."""
    for norm in list(clusters.all):
        products = products_behind(clusters, norm) if is_norm(norm) else []
        nodes = [*norm.nodes, *(node for each in products for node in each.nodes)]
        if products and clusters.takes(nodes, NORMED):
            copy_into(products, before_norm(norm))
            clusters.drop(norm)


def products_behind(clusters: Clusters, norm: Cluster) -> list[Cluster]:
    """The products that read what ``norm`` gives and can normalise it themselves; none if anybody else reads it."""
    readers = list(_readers(clusters, norm.output))
    taken = [each for each in readers if each is not None and _is_product(norm, each)]
    return taken if len(taken) == len(readers) else []


def is_norm(cluster: Cluster) -> bool:
    """Whether a cluster is nothing but a normalisation of many rows, without parameters."""
    node = cluster.anchor
    if node is None or not is_op(node, *NORMS) or not is_bare(node) or why_no_rows(node):
        return False
    return all(each is node or rounds(each) for each in cluster.nodes)


def _readers(clusters: Clusters, tensor: gs.Tensor) -> Iterator[Cluster | None]:
    """The clusters that read ``tensor``, through casts and views that they copy; None for whoever else does."""
    if is_graph_output(clusters.graph, tensor):
        yield None
    for reader in tensor.outputs:
        owner = clusters.owner.get(id(reader))
        if owner is not None or not (rounds(reader) or keeps_rows(reader)):
            yield owner
        else:
            yield from _readers(clusters, reader.outputs[0])


def _is_product(norm: Cluster, cluster: Cluster) -> bool:
    """Whether a cluster multiplies whole rows of what ``norm`` gives, of the type of its matrix in memory."""
    node = cluster.anchor
    if node is None or not is_plain_product(cluster) or node.attrs.get("transA", 0):
        return False
    rows, weight = node.inputs[0], node.inputs[1]
    if not isinstance(weight, gs.Constant) or rank(weight) != 2:
        return False
    chain = cluster.chains.get(rows.name, ())
    if cluster.source(rows) is not norm.output or not all(
        rounds(link) or keeps_rows(link) for link in chain
    ):
        return False
    others = (tensor for each in cluster.nodes for tensor in each.inputs)
    stored = stored_type(before_norm(norm)[0].inputs[0])
    narrow = stored is not None and stored.bytes == 2 and stored is stored_type(weight)
    return narrow and sum(tensor is rows for tensor in others) == 1


def before_norm(norm: Cluster) -> list[gs.Node]:
    """The nodes of a normalisation behind the casts and views that it copies."""
    return [*norm.chains.get(norm.nodes[0].inputs[0].name, ()), *norm.nodes]


def is_plain_product(cluster: Cluster) -> bool:
    """Whether a cluster is a product and what is around it, no part of another operator or with rows of its own kind."""
    return is_op(cluster.anchor, "Gemm", "MatMul") and cluster.name is None and not cluster.moments


def copy_into(products: list[Cluster], norm: list[gs.Node]) -> None:
    """Give every product a copy of a normalisation and of what is before it."""
    for product in products:
        assert product.anchor is not None
        rows = product.anchor.inputs[0].name
        product.chains[rows] = [*norm, *product.chains.get(rows, ())]
        product.name = NAME
