"""Let a product store moments of its rows for the products behind it that normalise them.

    x = MatMul(a, v) + b + residual       ->  x, m = one function, m: moments of x in groups of columns
    Norm(x) @ W                           ->  one function of x and m: rows by the mean and deviation that m says

Rows that are normalised are nearly always what a product has just stored, and their moments fall to it: its kernel
has all elements of a group at hand. The product behind reads a few numbers a row and multiplies rows as they lie,
where one that takes moments from its tiles (`normed_products`) does so again in each of them.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.kinds import RMS_NORM, VIEWS
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import dims, element_type, is_op, producer, rank, type_number
from wpk.graph_passes.fusion.clusters import Cluster, Clusters, Moments
from wpk.graph_passes.fusion.made_for import rounds, stored_type
from wpk.graph_passes.fusion.normed_products import (
    before_norm,
    copy_into,
    is_norm,
    is_plain_product,
    products_behind,
)
from wpk.graph_passes.products.normed_rows import keeps_rows
from wpk.problems import moments_group

STORED = "a product stores moments of rows for those that normalise them"

_AXES_ARE_AN_INPUT = 18
"""The opset from which a reduction reads its axes."""


def join_row_moments(clusters: Clusters) -> None:
    """Put normalisations into the products that alone read them, where a product in front can store the rows' moments."""
    for norm in list(clusters.all):
        if not is_norm(norm):
            continue
        products, before = products_behind(clusters, norm), before_norm(norm)
        maker = _maker(clusters, before[0].inputs[0])
        if not products or maker is None or any(each is maker for each in products):
            continue
        kind = "" if norm.anchor is None else norm.anchor.op
        seen = all(each is norm.anchor or rounds(each) for each in before)
        if not seen or (maker.moments is not None and maker.moments.kind != kind):
            continue
        nodes = [
            *maker.nodes,
            *norm.nodes,
            *(node for each in products for node in each.nodes),
        ]
        if not clusters.takes(nodes, STORED):
            continue
        if maker.moments is None:
            maker.moments = _moments(clusters.graph, maker.output, kind)
        copy_into(products, _known(clusters.graph, norm, maker.moments))
        clusters.drop(norm)


def _maker(clusters: Clusters, x: gs.Tensor) -> Cluster | None:
    """The cluster whose product has the rows of ``x``, and can store what belongs to them; None where there is none."""
    made, shape = producer(x), dims(x)
    maker = None if made is None else clusters.owner.get(id(made))
    if maker is None or maker.output is not x or not is_plain_product(maker):
        return None
    columns = shape[-1] if shape else None
    if not isinstance(columns, int) or not moments_group(columns):
        return None
    assert maker.anchor is not None  # `is_plain_product`
    weight, rows = maker.anchor.inputs[1], maker.anchor.outputs[0]
    if (
        not isinstance(weight, gs.Constant)
        or rank(weight) != 2
        or (dims(rows) or [])[-1] != columns
    ):
        return None
    stored = stored_type(x)
    if stored is None or stored.bytes != 2 or stored_type(weight) is not stored:
        return None
    views = (node for node in maker.nodes if is_op(node, *VIEWS))
    return maker if all(map(keeps_rows, views)) else None


def _moments(graph: gs.Graph, x: gs.Tensor, kind: str) -> Moments:
    """What computes them, of elements as they lie in memory."""
    made = _Nodes(graph, f"{x.name}_moments")
    wide = made.widened(made.parts.add("Cast", x, to=type_number(x)))
    outer, columns = list(dims(x) or [])[:-1], int(x.shape[-1])
    group = moments_group(columns)
    shape = [*outer, columns // group, group]
    target = made.parts.ints([*[0] * len(outer), columns // group, group])
    rows = made.parts.add("Reshape", wide, target, shape=shape)
    if kind == RMS_NORM:
        moments = made.mean(made.add("Mul", rows, rows), -1)
    else:
        means = made.mean(rows, -1)
        differences = made.add("Sub", rows, means)
        squares = made.mean(made.add("Mul", differences, differences), -1)
        moments = made.parts.add("Concat", means, squares, shape=[*shape[:-1], 2], axis=-1)
    return Moments(kind, made.nodes, moments)


def _known(graph: gs.Graph, norm: Cluster, moments: Moments) -> list[gs.Node]:
    """The nodes of a normalisation and before it, with those that compute it from known moments in its place.

    All readers copy them: what is left in the graph is dead.
    """
    before, node = before_norm(norm), norm.anchor
    assert node is not None  # `is_norm`
    made = _Nodes(graph, f"{node.name}_known")
    rows, given, output = made.widened(node.inputs[0]), moments.tensor, node.outputs[0]
    epsilon = np.array(node.attrs.get("epsilon", 1e-5), np.float32)
    if moments.kind == RMS_NORM:
        square = made.mean(given, -2)
    else:
        means, squares = made.halves(given)
        mean = made.mean(means, -2)
        differences = made.add("Sub", means, mean)
        total = made.add("Add", squares, made.add("Mul", differences, differences))
        square = made.mean(total, -2)
        rows = made.add("Sub", rows, made.without_last(mean))
    guarded = made.add("Add", square, made.parts.editor.constant(f"{node.name}_epsilon", epsilon))
    root = made.add("Sqrt", made.without_last(guarded))
    normed = made.add("Div", rows, root)
    if element_type(output) != np.float32:
        made.parts.add("Cast", normed, to=type_number(output))
    nodes = made.nodes
    node.outputs.clear()
    nodes[-1].outputs = [output]
    graph.nodes = [each for each in graph.nodes if each is not node]
    place = next(place for place, each in enumerate(before) if each is node)
    return [*before[:place], *nodes, *before[place + 1 :]]


class _Nodes:
    """Makes nodes in a graph."""

    def __init__(self, graph: gs.Graph, name: str) -> None:
        self._graph, self._before = graph, len(graph.nodes)
        self.parts = NodeParts(GraphEditor(graph), gs.Node("Moments", name))

    def add(self, op: str, first: gs.Tensor, *others: gs.Tensor) -> gs.Variable:
        """Work on each element of the first tensor."""
        return self.parts.add(op, first, *others)

    def widened(self, x: gs.Tensor) -> gs.Tensor:
        return self.parts.cast(x, np.float32)

    def mean(self, x: gs.Tensor, axis: int) -> gs.Variable:
        shape = list(dims(x) or [])
        shape[axis] = 1
        if self._graph.opset >= _AXES_ARE_AN_INPUT:
            axes = self.parts.ints([axis])
            return self.parts.add("ReduceMean", x, axes, shape=shape, keepdims=1)
        return self.parts.add("ReduceMean", x, shape=shape, axes=[axis], keepdims=1)

    def without_last(self, x: gs.Tensor) -> gs.Variable:
        """The tensor without its last axis, of one element."""
        shape = list(dims(x) or [])[:-1]
        return self.parts.add("Squeeze", x, self.parts.ints([-1]), shape=shape)

    def halves(self, x: gs.Tensor) -> tuple[gs.Variable, gs.Variable]:
        """Both elements of the last axis."""
        parts = [self.parts.ints([each]) for each in (0, 1, 2)]
        axis, shape = self.parts.ints([-1]), [*list(dims(x) or [])[:-1], 1]
        first, second = (
            self.parts.add("Slice", x, *parts[place : place + 2], axis, shape=shape)
            for place in range(2)
        )
        return first, second

    @property
    def nodes(self) -> list[gs.Node]:
        """Those that it has made."""
        return list(self._graph.nodes[self._before :])
