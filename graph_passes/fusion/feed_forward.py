"""Join the two products of a feed-forward block, and the normalisation of their rows, into one operator.

    MatMul(h(MatMul(Norm(x), U)), V) + x  ->  one function that holds all of it

The hidden rows are then nobody's output, and no kernel writes them: of a narrow x they are most of what the block
moves. A kernel keeps sums of whole rows of both products, so it is done for narrow rows alone, and there only where it is
chosen: what is computed of hidden numbers, and how often the weights are read, may take longer than what is
saved. In front of `FuseOperators`, which then sees one node.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes.core import GraphPass, PassResult
from wpk.graph_passes.core.functions import make_call, outside_inputs
from wpk.graph_passes.core.kinds import Numbers, numbers_of
from wpk.graph_passes.core.query import dims, is_op, producer, rank
from wpk.graph_passes.fusion.clusters import MOST_BESIDE, Cluster, Clusters, count_beside
from wpk.graph_passes.fusion.fuse_operators import plan_operators
from wpk.graph_passes.fusion.made_for import made_for, rounds, stored_type
from wpk.graph_passes.fusion.normed_products import (
    before_norm,
    copy_into,
    is_norm,
    is_plain_product,
    products_behind,
)

MOST_WIDTH = 256
"""Columns of a row of x, and of the output: what a kernel sums in registers."""

LEAST_ROWS = 64
"""Rows that one warpgroup has: of fewer, both products read their weights once as it is."""

NAME = "feed_forward"

APART = "the two products of a feed-forward block are two operators"


@dataclass(frozen=True)
class _Block:
    """The clusters of a block; no norm where its rows are multiplied as they are."""

    norm: Cluster | None
    first: Cluster
    second: Cluster

    @property
    def nodes(self) -> list[gs.Node]:
        """All of its nodes, in an order that equal blocks share."""
        norm = [] if self.norm is None else self.norm.nodes
        return [*norm, *self.first.nodes, *self.second.nodes]


class FuseFeedForwards(GraphPass):
    """Make every feed-forward block of narrow rows a call of a local function, where that is chosen."""

    name = "fuse-feed-forwards"
    is_choice = True
    is_usual = False

    def __init__(self, storage: DType = DType.FP32, *, warpgroups: bool = True) -> None:
        """Make the pass.

        Args:
            storage: Of products; hidden rows that are kept in registers have 16 bits.
            warpgroups: Whether the target's warpgroups multiply; no other kernel computes a block.
        """
        self._joins = storage.bytes == 2 and warpgroups

    def apply(self, graph: gs.Graph) -> PassResult:
        """Plan all operators as `FuseOperators` will, and write the blocks among them."""
        result = PassResult()
        if not self._joins or not any(map(_is_narrow, graph.nodes)):
            return result
        clusters = plan_operators(graph, lambda node, reason: None, lambda nodes, words: True)
        for block in list(_blocks(clusters)):
            if self.takes(result, block.nodes, APART):
                _join(clusters, block)
                result.rewritten += 1
        for cluster in clusters.all:
            if cluster.name == NAME:
                make_call(graph, cluster.nodes, cluster.output, cluster.chains, NAME)
        return result


def _join(clusters: Clusters, block: _Block) -> None:
    if block.norm is not None:
        copy_into([block.first], before_norm(block.norm))
        clusters.drop(block.norm)
    clusters.join([block.first, block.second], block.first.anchor, NAME)


def _blocks(clusters: Clusters) -> Iterator[_Block]:
    """The blocks whose parts can be joined."""
    for second in clusters.all:
        if not _is_product(second):
            continue
        assert second.anchor is not None
        hidden = second.anchor.inputs[0]
        first = made_for(clusters, second, hidden)
        between = second.chains.get(hidden.name, ())
        if first is None or not _is_product(first) or not all(map(rounds, between)):
            continue
        block = _Block(_norm_before(clusters, first), first, second)
        if _fits(block):
            yield block


def _is_narrow(node: gs.Node) -> bool:
    """Whether a node is a product by constant weights of which one side is narrow enough."""
    if not is_op(node, "Gemm", "MatMul") or not isinstance(node.inputs[1], gs.Constant):
        return False
    return rank(node.inputs[1]) == 2 and min(node.inputs[1].shape) <= MOST_WIDTH


def _is_product(cluster: Cluster) -> bool:
    """Whether a cluster multiplies rows by constant weights of 16 bits, and all of it is computed in fp32."""
    node = cluster.anchor
    if node is None or not is_plain_product(cluster) or not _is_narrow(node):
        return False
    stored = stored_type(node.inputs[1])
    if stored is None or stored.bytes != 2 or node.attrs.get("transA", 0):
        return False
    plain = cluster.nodes[0] is node and stored_type(node.inputs[0]) is stored
    return plain and all(numbers_of(each) is Numbers.FP32 for each in cluster.nodes)


def _norm_before(clusters: Clusters, first: Cluster) -> Cluster | None:
    """The normalisation that makes the rows of a product, which alone reads it."""
    assert first.anchor is not None
    source = first.source(first.anchor.inputs[0])
    made = producer(source)
    norm = None if made is None else clusters.owner.get(id(made))
    if norm is None or norm.output is not source or not is_norm(norm):
        return None
    readers = products_behind(clusters, norm)
    return norm if len(readers) == 1 and readers[0] is first else None


def _fits(block: _Block) -> bool:
    """Whether a kernel has the block's rows: many, narrow ones, of 16 bits in memory."""
    first, second = block.first.anchor, block.second.anchor
    assert first is not None
    assert second is not None
    x = block.first.source(first.inputs[0])
    if block.norm is not None:
        x = before_norm(block.norm)[0].inputs[0]
    rows, output = dims(first.inputs[0]) or [None], dims(second.outputs[0]) or [None]
    width, columns = rows[-1], output[-1]
    if not isinstance(width, int) or not isinstance(columns, int):
        return False
    if max(width, columns) > MOST_WIDTH:
        return False
    if prod(extent for extent in rows[:-1] if isinstance(extent, int)) < LEAST_ROWS:
        return False
    # Two products of a single row of each image are a squeeze, whatever the batch is.
    image = (dims(x) or [])[1:]
    inner = [extent for extent in image if isinstance(extent, int)]
    several = len(image) > 1 and len(inner) == len(image) and prod(inner) > width
    narrow = stored_type(x) is stored_type(first.inputs[1]) is stored_type(second.inputs[1])
    few = count_beside([block.first, block.second]) <= MOST_BESIDE
    return several and narrow and _of_columns(block.first) and few


def _of_columns(first: Cluster) -> bool:
    """Whether whatever is read behind a product is the same in all rows."""
    assert first.anchor is not None
    product = {id(tensor) for tensor in (*first.anchor.inputs, *first.anchor.outputs)}
    made = {id(tensor) for node in first.nodes for tensor in node.outputs} | product
    bias = list(first.anchor.inputs[2:])
    read = [t for node in first.nodes for t in outside_inputs(node) if id(t) not in made]
    shapes = [dims(tensor) for tensor in (*read, *bias) if not tensor.is_empty()]
    return all(shape is not None and set(shape[:-1]) <= {1} for shape in shapes)
