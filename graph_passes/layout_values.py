"""Decide which values of a graph are stored channels last.

A value is *wanted* channels last when a spatial operator reads it, directly or through operators
and data movements that can pass the order on. It *becomes* channels last when it is wanted and its
producer can write it so: an operator always can (its body transposes), a data movement when one
of its inputs is channels last, a chain of views when its source is.

Graph inputs and outputs keep their order: the operators at the edges read and write it.
"""

from collections.abc import Callable

import onnx_graphsurgeon as gs

from wpk.graph_passes.functions import calls, is_call
from wpk.graph_passes.fusion_rules import ANCHORS, SPATIAL, VIEWS
from wpk.graph_passes.layout_axes import FOLLOWERS, RANKS, why_not_follow
from wpk.graph_passes.query import is_graph_output, is_op, producer, rank


class LayoutPlan:
    """The values of one graph that shall be channels last."""

    def __init__(self, graph: gs.Graph, refuse: Callable[[gs.Node, str], None]) -> None:
        """Decide for all values; ``refuse`` is told which data movements stay as they are."""
        self._graph = graph
        self._functions = {id(node): function for node, function in calls(graph)}
        self._wanted: set[int] = set()
        self.last: set[int] = set()
        for node in reversed(graph.nodes):
            for tensor in node.outputs:
                if self._is_wanted(tensor):
                    self._wanted.add(id(tensor))
        for node in graph.nodes:
            reason = self._why_first(node)
            if reason is None:
                self.last.update(id(tensor) for tensor in node.outputs)
            elif reason:
                refuse(node, reason)

    def is_last(self, tensor: gs.Tensor) -> bool:
        """Whether ``tensor`` shall be stored channels last."""
        return id(tensor) in self.last

    def _is_wanted(self, tensor: gs.Tensor) -> bool:
        for reader in tensor.outputs:
            function = self._functions.get(id(reader))
            if function is not None:
                if _reads_spatially(function, _index(reader, tensor)):
                    return True
                same_rank = rank(reader.outputs[0]) == rank(tensor)
                if same_rank and id(reader.outputs[0]) in self._wanted:
                    return True
            elif is_op(reader, *FOLLOWERS, *VIEWS) and any(
                id(output) in self._wanted for output in reader.outputs
            ):
                return True
        return False

    def _why_first(self, node: gs.Node) -> str | None:
        """Say why ``node`` writes channels first; an empty text where nobody would ask."""
        if not any(id(tensor) in self._wanted for tensor in node.outputs):
            return ""
        if any(rank(tensor) not in RANKS for tensor in node.outputs):
            return ""
        for tensor in node.outputs:
            if is_graph_output(self._graph, tensor):
                return f"'{tensor.name}' is a graph output and keeps its order"
        if is_call(node):
            return None
        if is_op(node, *VIEWS):
            return None if self.is_last(_source_of_views(node)) else ""
        if not any(self.is_last(tensor) for tensor in node.inputs):
            return ""
        return why_not_follow(node)


def _index(reader: gs.Node, tensor: gs.Tensor) -> int:
    return next(i for i, candidate in enumerate(reader.inputs) if candidate is tensor)


def _source_of_views(node: gs.Node) -> gs.Tensor:
    tensor = node.inputs[0]
    maker = producer(tensor)
    while maker is not None and is_op(maker, *VIEWS):
        tensor = maker.inputs[0]
        maker = producer(tensor)
    return tensor


def body_anchor(function: gs.Function) -> gs.Node | None:
    """Return the anchor of an operator's body; None for an element-wise graph."""
    return next((node for node in function.nodes if is_op(node, *ANCHORS)), None)


def _reads_spatially(function: gs.Function, index: int) -> bool:
    """Whether input ``index`` is what a spatial anchor slides over, in channels-first order."""
    anchor = body_anchor(function)
    if anchor is None or not is_op(anchor, *SPATIAL):
        return False
    tensor = anchor.inputs[0]
    maker = producer(tensor)
    if maker is not None and is_op(maker, "Cast"):
        tensor = maker.inputs[0]
    return tensor is function.inputs[index] and rank(tensor) in RANKS
