"""Join a normalisation of rows and the product that alone reads them.

    Norm(x) @ W  ->  one function of both      Norm: LayerNormalization or RMSNormalization, without parameters

`NormIntoProduct` has moved the parameters into the weights. The product's kernel reads x itself, takes each
row's mean and mean square from the tiles that it multiplies, and applies both to its sums. Every block
that has a part of a row does so again, which is why the two compete.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import is_op, rank
from wpk.graph_passes.fusion.clusters import Cluster, Clusters
from wpk.graph_passes.fusion.made_for import made_for, rounds, stored_type
from wpk.graph_passes.products.normed_rows import NORMS, is_bare, keeps_rows, why_no_rows

NAME = "normed_product"

NORMED = "a product normalises the rows that it reads"


def join_normed_products(clusters: Clusters) -> None:
    """Join every product with the normalisation before it."""
    for product in list(clusters.all):
        norm = _norm_before(clusters, product)
        if norm is not None and clusters.takes([*norm.nodes, *product.nodes], NORMED):
            clusters.join([norm, product], product.anchor, NAME)


def _norm_before(clusters: Clusters, product: Cluster) -> Cluster | None:
    """The cluster of nothing but a normalisation, whose rows a product by a constant matrix reads whole."""
    node = product.anchor
    if node is None or not is_op(node, "Gemm", "MatMul") or product.nodes[0] is not node:
        return None
    weight = node.inputs[1]
    if not isinstance(weight, gs.Constant) or rank(weight) != 2 or node.attrs.get("transA", 0):
        return None
    norm = made_for(clusters, product, node.inputs[0])
    chain = product.chains.get(node.inputs[0].name, ())
    if norm is None or not all(rounds(link) or keeps_rows(link) for link in chain):
        return None
    anchor = norm.anchor
    if anchor is None or not is_op(anchor, *NORMS) or not is_bare(anchor):
        return None
    if why_no_rows(anchor) is not None or not all(n is anchor or rounds(n) for n in norm.nodes):
        return None
    stored = stored_type(_in_memory(norm, anchor.inputs[0]))
    narrow = stored is not None and stored.bytes == 2 and stored is stored_type(weight)
    return norm if narrow else None


def _in_memory(norm: Cluster, tensor: gs.Tensor) -> gs.Tensor:
    """The tensor in memory that a normalisation reads as ``tensor``, through casts and views."""
    for node in reversed(norm.nodes):
        if node.outputs[0] is tensor:
            tensor = node.inputs[0]
    chain = norm.chains.get(tensor.name, ())
    return chain[0].inputs[0] if chain else tensor
