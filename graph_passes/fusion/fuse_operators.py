"""Fuse operators: an anchor with the element-wise nodes, casts and views around it.

    Relu(Add(Conv(x, w, b), y))                 ->  conv_add_relu(x, w, b, y)
    Softmax(Add(Mul(s, c), mask))               ->  mul_add_softmax(s, mask)
    MatMul(Transpose(Reshape(q)), k)            ->  matmul(q, k), the views inside
    Mul(x, Sigmoid(x))                          ->  sigmoid_mul(x)

Each result is a call of a local function that holds the original nodes. Who gets a node that two
operators could have:

1. A softmax takes the masks and scales before it, so that they are applied in fp32.
2. Anchors take what follows them, those behind the longest chain of anchors first: of two producers
   of one residual Add the one that is ready last computes it, so that the other, a shortcut, can run
   beside the chain. Of equals it is the last in the graph.
3. Norms and reductions take what is left before them, convolutions the limits of their input.
4. What is left becomes element-wise operators.
5. Casts and views go into the operators that read them, copied where several do; views that
   cannot be read in place go into the operator that writes them.
6. A product, the softmax that reads it and the product that reads that become one: attention.
7. So do a normalisation without parameters and the product that alone reads its rows; where a product in front makes
   these rows, it gives their moments as well;
8. and a global mean, two products of the row that it gives and what scales by them: a squeeze.
"""

from collections.abc import Callable
from functools import partial

import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes.core import GraphPass, PassResult, Refusal
from wpk.graph_passes.core.functions import make_call, stem_of
from wpk.graph_passes.core.kinds import (
    ANCHORS,
    SOFTMAX,
    WITH_PROLOGUE,
    is_anchor,
    is_elementwise,
    why_no_anchor,
)
from wpk.graph_passes.core.query import dims, is_op
from wpk.graph_passes.fusion.absorb import absorb_views, waits_for_readers
from wpk.graph_passes.fusion.attention import join_attention
from wpk.graph_passes.fusion.clusters import Cluster, Clusters, Takes
from wpk.graph_passes.fusion.norm_groups import take_groups
from wpk.graph_passes.fusion.normed_products import join_normed_products
from wpk.graph_passes.fusion.row_moments import join_row_moments
from wpk.graph_passes.fusion.squeeze import join_squeezes


class FuseOperators(GraphPass):
    """Make every anchor and every element-wise graph a call of a local function."""

    name = "fuse-operators"
    is_choice = True

    def __init__(self, storage: DType = DType.FP32, *, clusters: bool = True) -> None:
        """Make the pass.

        Args:
            storage: Of products; those of 16 bits normalise the rows that they read.
            clusters: Without them one block would have to read an image, and no squeezes are joined.
        """
        self._norms, self._clusters = storage.bytes == 2, clusters

    def apply(self, graph: gs.Graph) -> PassResult:
        """Plan all operators on the graph as it is, then write them."""
        result = PassResult()
        refusals: dict[Refusal, None] = {}

        def refuse(node: gs.Node, reason: str) -> None:
            refusals[Refusal(node.name, reason)] = None

        clusters = plan_operators(graph, refuse, partial(self.takes, result))
        if self._norms:
            join_row_moments(clusters)
            join_normed_products(clusters)
        if self._clusters:
            join_squeezes(clusters)
        for cluster in clusters.all:
            _make_call(graph, cluster)
            result.rewritten += 1
        result.refusals += refusals
        return result


def _make_call(graph: gs.Graph, cluster: Cluster) -> None:
    moments = cluster.moments
    own, beside = ([], None) if moments is None else (moments.nodes, moments.tensor)
    make_call(
        graph,
        [*cluster.nodes, *own],
        cluster.output,
        cluster.chains,
        cluster.name or stem_of(cluster.nodes),
        beside=beside,
    )


def plan_operators(
    graph: gs.Graph, refuse: Callable[[gs.Node, str], None], takes: Takes
) -> Clusters:
    """Divide the bare nodes of ``graph`` into clusters without changing it.

    Args:
        graph: The graph.
        refuse: Told what stays outside, and why.
        takes: Decides for every two consecutive subsets whether they are merged.
    """
    clusters = Clusters(graph, refuse, takes)
    anchors = []
    for node in graph.nodes:
        if is_anchor(node):
            cluster = clusters.start(node, anchor=True)
            anchors.append(cluster)
            if is_op(node, "InstanceNormalization"):
                take_groups(clusters, cluster)
        elif is_op(node, *ANCHORS):
            refuse(node, why_no_anchor(node) or "")
    for cluster in anchors:
        if is_op(cluster.anchor, *SOFTMAX):
            _grow_before(clusters, cluster.nodes[0])
    depths = _depths(graph, clusters)
    by_depth = sorted(anchors, key=lambda each: depths[id(each.anchor)])
    for cluster in reversed(by_depth):
        clusters.grow_epilogue(cluster)
    for cluster in reversed(anchors):
        if cluster.anchor is not None and is_op(cluster.anchor, *WITH_PROLOGUE):
            _grow_before(clusters, cluster.anchor)
    for cluster in anchors:
        if is_op(cluster.anchor, "Conv"):
            clusters.grow_limits(cluster)
    for node in reversed(graph.nodes):
        if is_elementwise(node) and id(node) not in clusters.owner:
            if waits_for_readers(clusters, node):
                continue
            cluster = clusters.start(node, anchor=False)
            clusters.grow_prologue(cluster, node.inputs, dims(node.outputs[0]) or [])
    absorb_views(clusters)
    join_attention(clusters)
    return clusters


def _depths(graph: gs.Graph, clusters: Clusters) -> dict[int, int]:
    """For each node the anchors on the longest chain that ends with it; keys are ids."""
    depths: dict[int, int] = {}
    for node in graph.nodes:
        makers = [tensor.inputs[0] for tensor in node.inputs if tensor.inputs]
        behind = max((depths.get(id(maker), 0) for maker in makers), default=0)
        depths[id(node)] = behind + (id(node) in clusters.owner)
    return depths


def _grow_before(clusters: Clusters, anchor: gs.Node) -> None:
    data = anchor.inputs[0]
    shape = dims(data)
    if shape is not None:
        clusters.grow_prologue(clusters.owner[id(anchor)], [data], shape)
