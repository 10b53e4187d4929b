"""Which channels of what tensor others consist of, where nodes only move channels.

Channels are the second dimension. Split, Slice and Gather along it choose, and views that regroup it and
nothing else (a shuffle: Reshape, Transpose, Reshape) turn its order.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core.kinds import VIEWS
from wpk.graph_passes.core.query import (
    dims,
    given,
    integers,
    is_graph_output,
    is_op,
    producer,
    rank,
)
from wpk.graph_passes.movement.chains.views import Factor, trace, views_before

AXIS = 1
_CHOOSING = ("Split", "Slice", "Gather")

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Channels:
    """Channels of a tensor that something consists of, in its order.

    Attributes:
        source: The tensor.
        places: Of each channel where it is in the source.
    """

    source: gs.Tensor
    places: Places

    def lie_together(self, aligned: int) -> bool:
        """Whether they are a range that begins at a multiple of ``aligned``, which takes no kernel to read."""
        together = bool(np.all(np.diff(self.places) == 1))
        return together and int(self.places[0]) % aligned == 0

    def are_all(self) -> bool:
        """Whether they are all channels of the source, each of them once."""
        return np.array_equal(np.sort(self.places), np.arange(channel_count(self.source) or 0))


def channel_count(tensor: gs.Tensor) -> int | None:
    """Return the number of channels; None where it, or the number of dimensions, is not known."""
    shape = dims(tensor)
    known = shape is not None and len(shape) > AXIS + 1 and isinstance(shape[AXIS], int)
    return int(shape[AXIS] or 0) if shape is not None and known else None


def channels_of(tensor: gs.Tensor) -> Channels | None:
    """Go back from a tensor over everything that only moves channels; None where channels are not known."""
    count = channel_count(tensor)
    if count is None:
        return None
    places = np.arange(count, dtype=np.int64)
    while (step := _step(tensor)) is not None:
        tensor, places = step.source, step.places[places]
    return Channels(tensor, places)


def _step(tensor: gs.Tensor) -> Channels | None:
    """The channels of what the last nodes in front of a tensor read."""
    node = producer(tensor)
    if is_op(node, *VIEWS):
        return _viewed(tensor)
    if node is None or not is_op(node, *_CHOOSING) or (rank(tensor) or 0) <= AXIS:
        return None
    source, count = node.inputs[0], channel_count(node.inputs[0])
    if count is None or rank(source) != rank(tensor):
        return None
    places = _chosen(node, tensor, np.arange(count, dtype=np.int64))
    return None if places is None else Channels(source, places)


def _chosen(node: gs.Node, tensor: gs.Tensor, places: Places) -> Places | None:
    dimensions = rank(tensor) or 1
    if is_op(node, "Slice"):
        starts, ends, axes = (integers(given(node, index)) for index in (1, 2, 3))
        steps = integers(given(node, 4)) or [1]
        if starts is None or ends is None or axes is None or len(axes) != 1:
            return None
        if axes[0] % dimensions != AXIS or steps[0] < 1:
            return None
        return places[starts[0] : ends[0] : steps[0]]
    if int(node.attrs.get("axis", 0)) % dimensions != AXIS:
        return None
    if is_op(node, "Gather"):
        index = integers(node.inputs[1])
        return None if index is None or rank(node.inputs[1]) != 1 else places[index]
    sizes = [channel_count(each) for each in node.outputs]
    number = next(i for i, each in enumerate(node.outputs) if each is tensor)
    if any(size is None for size in sizes):
        return None
    begin = sum(int(size or 0) for size in sizes[:number])
    return places[begin : begin + int(sizes[number] or 0)]


def _viewed(tensor: gs.Tensor) -> Channels | None:
    """Views that leave all dimensions but that of channels as they are."""
    chain = views_before(tensor)
    source = chain[0].inputs[0]
    views = trace(source, chain)
    if views is None or len(views.source) != len(views.target) or channel_count(source) is None:
        return None
    for axis, (size, group) in enumerate(zip(views.source, views.groups, strict=True)):
        if axis != AXIS and group != (() if size in (1, None) else (Factor(axis, size),)):
            return None
    places = np.zeros(1, np.int64)
    for factor in views.groups[AXIS]:
        if factor.axis != AXIS or not isinstance(factor.size, int):
            return None
        places = (places[:, None] + np.arange(factor.size) * factor.step).reshape(-1)
    return Channels(source, places)


def readers_behind_movement(
    graph: gs.Graph, tensor: gs.Tensor
) -> Iterator[tuple[gs.Tensor, gs.Node | None]]:
    """Yield who reads a tensor's elements, or what nodes that move them make, and what of these each reads.

    Instead of a node None where what is read leaves the graph.
    """
    if is_graph_output(graph, tensor):
        yield tensor, None
    for node in list(tensor.outputs):
        if not (is_op(node, *_CHOOSING, *VIEWS) and node.inputs[0] is tensor):
            yield tensor, node
            continue
        for output in node.outputs:
            yield from readers_behind_movement(graph, output)
