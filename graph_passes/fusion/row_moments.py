"""Let a product store moments of its rows for the products behind it that normalise them.

    x = MatMul(a, v) + b + residual       ->  x, m = one function, m: moments of x in groups of 32 columns
    Norm(x) @ W                           ->  one function of x and m

Rows that are normalised are nearly always what a product has just stored, and their moments fall to it: its kernel
has all elements of a group at hand. The product behind reads a few numbers a row and multiplies rows as they lie,
where one that takes moments from its tiles (`normed_products`) does so again in each of them. The body of the second
function is still the normalisation and the product, of x alone: m says nothing that x does not, so it is an input
that no node of the body reads.
"""

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.kinds import VIEWS
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import dims, element_type, is_op, producer, rank
from wpk.graph_passes.fusion.clusters import Cluster, Clusters, Moments
from wpk.graph_passes.fusion.made_for import stored_type
from wpk.graph_passes.fusion.normed_products import (
    before_norm,
    copy_into,
    is_norm,
    is_plain_product,
    products_behind,
)
from wpk.graph_passes.products.normed_rows import keeps_rows
from wpk.problems import MOMENTS_GROUP

STORED = "a product stores moments of rows for those that normalise them"

_AXES_ARE_AN_INPUT = 18
"""The opset from which a reduction reads its axes."""


def join_row_moments(clusters: Clusters) -> None:
    """Put normalisations into the products that alone read them, where a product in front can store the rows' moments."""
    for norm in list(clusters.all):
        if not is_norm(norm):
            continue
        products = products_behind(clusters, norm)
        x = before_norm(norm)[0].inputs[0]
        maker = _maker(clusters, x)
        if not products or maker is None or any(each is maker for each in products):
            continue
        kind = "" if norm.anchor is None else norm.anchor.op
        if maker.moments is not None and maker.moments.kind != kind:
            continue
        nodes = [
            *maker.nodes,
            *norm.nodes,
            *(node for each in products for node in each.nodes),
        ]
        if not clusters.takes(nodes, STORED):
            continue
        if maker.moments is None:
            maker.moments = _moments(clusters.graph, x, kind)
        copy_into(clusters, norm, products)
        for product in products:
            product.knows = maker.moments.tensor


def _maker(clusters: Clusters, x: gs.Tensor) -> Cluster | None:
    """The cluster whose product has the rows of ``x``, and can store what belongs to them; None where there is none."""
    made, shape = producer(x), dims(x)
    maker = None if made is None else clusters.owner.get(id(made))
    if maker is None or maker.output is not x or not is_plain_product(maker):
        return None
    columns = shape[-1] if shape else None
    if not isinstance(columns, int) or columns % MOMENTS_GROUP:
        return None
    assert maker.anchor is not None  # `is_plain_product`
    weight, rows = maker.anchor.inputs[1], maker.anchor.outputs[0]
    if not isinstance(weight, gs.Constant) or rank(weight) != 2 or (dims(rows) or [])[-1] != columns:
        return None
    stored = stored_type(x)
    if stored is None or stored.bytes != 2 or stored_type(weight) is not stored:
        return None
    views = (node for node in maker.nodes if is_op(node, *VIEWS))
    return maker if all(map(keeps_rows, views)) else None


def _moments(graph: gs.Graph, x: gs.Tensor, kind: str) -> Moments:
    """What computes them, of elements as they lie in memory: nodes of the function alone."""
    before = len(graph.nodes)
    parts = NodeParts(GraphEditor(graph), gs.Node("Moments", f"{x.name}_moments"))
    own = element_type(x)
    to = own if isinstance(own, int) else onnx.helper.np_dtype_to_tensor_dtype(np.dtype(own))
    stored = parts.add("Cast", x, to=to)
    wide = parts.add("Cast", stored, dtype=np.float32, to=onnx.TensorProto.FLOAT)
    outer, groups = list(dims(x) or [])[:-1], int(x.shape[-1]) // MOMENTS_GROUP
    target = parts.ints([*[0] * len(outer), groups, MOMENTS_GROUP])
    rows = parts.add("Reshape", wide, target, shape=[*outer, groups, MOMENTS_GROUP])

    def mean(tensor: gs.Tensor) -> gs.Variable:
        shape = [*outer, groups, 1]
        if graph.opset >= _AXES_ARE_AN_INPUT:
            return parts.add("ReduceMean", tensor, parts.ints([-1]), shape=shape, keepdims=1)
        return parts.add("ReduceMean", tensor, shape=shape, axes=[-1], keepdims=1)

    if kind == "RMSNormalization":
        moments = mean(parts.add("Mul", rows, rows))
    else:
        means = mean(rows)
        differences = parts.add("Sub", rows, means)
        squares = mean(parts.add("Mul", differences, differences))
        moments = parts.add("Concat", means, squares, shape=[*outer, groups, 2], axis=-1)
    nodes = list(graph.nodes[before:])
    del graph.nodes[before:]
    return Moments(kind, nodes, moments)
