"""Join a global mean, two products of the row that it gives, and what scales by the result.

    x * g(Conv(h(Conv(GlobalAveragePool(x)))))  ->  one function that holds all of it

That is squeeze and excitation; a classifier of two layers behind a global pool has the same first
three parts. The parts are clusters by then: activations belong to the products. Between the parts lie a
few hundred numbers for each image, and a kernel of each part takes as long as its launch. Three forms
compete: with what scales, without it, and the two products alone, which is what is left where an image
is too large to be read by the few blocks that share a row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.functions import outside_inputs
from wpk.graph_passes.core.kinds import VIEWS, Numbers, numbers_of
from wpk.graph_passes.core.query import (
    dims,
    given,
    integers,
    is_op,
    pads,
    why_any_shared,
)
from wpk.graph_passes.fusion.clusters import MOST_BESIDE, Cluster, Clusters, count_beside
from wpk.graph_passes.fusion.made_for import is_multiplied, made_for, rounds

MOST_POOLED = 2**20
"""Elements of an image that blocks which share a row read, or scale, themselves."""

MOST_SCALED = 2**20
"""Elements of an image times the operations of what scales it, which only the blocks of a row compute."""

MOST_WEIGHTS = 2**20
"""Elements of both weights together."""

MOST_CHANNELS = 4096
"""Of a row: a few rows of so many fit the shared memory of any GPU as fp32."""

NAME = "squeeze"

SCALED = "a global mean, two products and what scales by them are one operator"
POOLED = "a global mean and two products are one operator"
CHAINED = "two products of a row are one operator"


@dataclass(frozen=True)
class _Squeeze:
    """The clusters; mean and scaling where they can be joined, too, with the views in front of scaling."""

    mean: Cluster | None
    down: Cluster
    up: Cluster
    scaling: Cluster | None
    views: tuple[gs.Node, ...] = ()


def join_squeezes(clusters: Clusters) -> None:
    """Join what belongs together, as much of it as is taken."""
    for up in list(clusters.all):
        found = _around(clusters, up)
        if found is None:
            continue
        anchor = up.anchor
        for parts, words in _forms(found):
            nodes = [node for part in parts for node in part.nodes]
            if clusters.takes(nodes, words):
                clusters.join(parts, anchor, NAME)
                if parts[-1] is found.scaling:
                    clusters.take(parts[0], found.views)
                break


def _forms(found: _Squeeze) -> Iterator[tuple[list[Cluster], str]]:
    """What may be joined, most of it first."""
    products = [found.down, found.up]
    if found.mean is not None:
        if found.scaling is not None:
            yield [found.mean, *products, found.scaling], SCALED
        yield [found.mean, *products], POOLED
    yield products, CHAINED


def _around(clusters: Clusters, up: Cluster) -> _Squeeze | None:
    """The clusters before and behind a second product; None where it is none."""
    if not _is_product_of_rows(up):
        return None
    assert up.anchor is not None
    down = made_for(clusters, up, up.anchor.inputs[0])
    if down is None or not _is_product_of_rows(down):
        return None
    assert down.anchor is not None
    if _weights(down) + _weights(up) > MOST_WEIGHTS or count_beside([down, up]) > MOST_BESIDE:
        return None
    mean = made_for(clusters, down, down.anchor.inputs[0])
    if mean is None or not _is_mean(mean):
        # A row that comes from anywhere is a layer's input, and layers have many rows.
        return None
    if _pooled(mean) > MOST_POOLED:
        return _Squeeze(None, down, up, None)
    scaling, views = _scaling(clusters, mean, up)
    if scaling is not None and (
        count_beside([down, up, scaling]) > MOST_BESIDE
        or len(scaling.nodes) * _pooled(mean) > MOST_SCALED
    ):
        scaling = None
    return _Squeeze(mean, down, up, scaling, views)


def _begins(cluster: Cluster) -> bool:
    """Whether nothing stands before a cluster's anchor, and all of it is computed in fp32."""
    numbers = map(numbers_of, cluster.nodes)
    return cluster.nodes[0] is cluster.anchor and all(each is Numbers.FP32 for each in numbers)


def _is_product_of_rows(cluster: Cluster) -> bool:
    """Whether a cluster multiplies one row of each image by constant weights."""
    node = cluster.anchor
    if node is None or not is_op(node, "Conv", "Gemm", "MatMul") or not _begins(cluster):
        return False
    data, weight = node.inputs[:2]
    if not isinstance(weight, gs.Constant) or not is_multiplied(weight) or not is_multiplied(data):
        return False
    shape, given_shape = list(weight.shape), dims(data) or []
    if is_op(node, "Conv"):
        of_one = all(extent == 1 for extent in (*shape[2:], *given_shape[2:]))
        plain = int(node.attrs.get("group", 1)) == 1 and not pads(node)
        # Strides do nothing to one pixel.
        return len(shape) > 2 and of_one and plain and max(shape[:2]) <= MOST_CHANNELS
    if node.attrs.get("transA", 0) or len(given_shape) != 2 or len(shape) != 2:
        return False
    return bool(max(shape) <= MOST_CHANNELS)


def _weights(cluster: Cluster) -> int:
    assert cluster.anchor is not None
    return prod(cluster.anchor.inputs[1].shape)


def _is_mean(cluster: Cluster) -> bool:
    """Whether a cluster is the mean of all but two axes, the batch and the channels, and no more."""
    node = cluster.anchor
    if node is None or not is_op(node, "GlobalAveragePool", "ReduceMean"):
        return False
    place = next(index for index, each in enumerate(cluster.nodes) if each is node)
    chain = cluster.chains.get(node.inputs[0].name, ())
    if not all(map(rounds, (*cluster.nodes[:place], *chain))):
        return False
    axes = _mean_axes(node)
    shape = dims(node.inputs[0]) or []
    kept = [axis for axis in range(len(shape)) if axis not in (axes or ())]
    if axes is None or len(kept) != 2 or kept[0] != 0:
        return False
    behind = [t for each in cluster.nodes[place + 1 :] for t in outside_inputs(each)]
    made = {id(t) for each in cluster.nodes for t in each.outputs}
    channels = shape[kept[1]]
    fixed = all(isinstance(extent, int) for extent in shape[1:])
    in_fp32 = all(numbers_of(each) is Numbers.FP32 for each in cluster.nodes)
    small = isinstance(channels, int) and channels <= MOST_CHANNELS
    return fixed and small and in_fp32 and all(id(t) in made for t in behind)


def _mean_axes(node: gs.Node) -> list[int] | None:
    shape = dims(node.inputs[0])
    if shape is None:
        return None
    if is_op(node, "GlobalAveragePool"):
        return list(range(2, len(shape)))
    axes = node.attrs.get("axes")
    if axes is None:
        axes = integers(given(node, 1)) if given(node, 1) is not None else None
    return None if not axes else [int(axis) % len(shape) for axis in axes]


def _pooled(mean: Cluster) -> int:
    """Elements of an image."""
    assert mean.anchor is not None
    shape = dims(mean.anchor.inputs[0]) or []
    return prod([extent for extent in shape[1:] if isinstance(extent, int)])


def _scaling(
    clusters: Clusters, mean: Cluster, up: Cluster
) -> tuple[Cluster | None, tuple[gs.Node, ...]]:
    """The element-wise cluster that alone reads the gates, and has what was pooled, scaled by them.

    Returns:
        The cluster, if there is one, and the views between that no cluster has.
    """
    assert mean.anchor is not None
    tensors = [up.output]
    while len(tensors[-1].outputs) == 1 and is_op(tensors[-1].outputs[0], *VIEWS):
        tensors.append(tensors[-1].outputs[0].outputs[0])
    gates = tensors[-1]
    if why_any_shared(clusters.graph, tensors) is not None:
        return None, ()
    reader = clusters.owner.get(id(gates.outputs[0]))
    x, axes = mean.anchor.inputs[0], _mean_axes(mean.anchor) or []
    shape = dims(x) or []
    if reader is None or reader.anchor is not None or dims(reader.output) != shape:
        return None, ()
    of_channels = [1 if axis in axes else extent for axis, extent in enumerate(shape)][1:]
    if (dims(gates) or [])[1:] != of_channels or any(
        not _fits(node, shape, axes) for node in reader.nodes
    ):
        return None, ()
    views = [] if gates.name in reader.chains else [t.inputs[0] for t in tensors[1:]]
    owned = any(id(view) in clusters.owner for view in views)
    return (None, ()) if owned else (reader, tuple(views))


def _fits(node: gs.Node, shape: Sequence[int | str | None], axes: Sequence[int]) -> bool:
    """Whether a node works on whole images, on a number, or on one for each channel."""
    if numbers_of(node) is not Numbers.FP32:
        return False
    for tensor in (*outside_inputs(node), *node.outputs):
        own = dims(tensor)
        if own is None or not is_multiplied(tensor):
            return False
        padded = [1] * (len(shape) - len(own)) + own
        one_of_channel = all(padded[axis] == 1 for axis in axes)
        if own != list(shape) and not (len(padded) == len(shape) and one_of_channel):
            return False
    return True
