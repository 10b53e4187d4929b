"""Which nodes ONNX Runtime computes: those that were refused, found attempt by attempt.

lower ─ refused nodes ─▶ operators that hold some are opened ─▶ lower ─ refused nodes ─▶ lower without
them ─ nothing more is refused ─▶ they are outlined in groups ─▶ lower

A few numbers that kernels would only bring from one of them to the next stay with ONNX Runtime: a kernel of
a microsecond would part two steps, each of which waits for the GPU and copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import onnx_graphsurgeon as gs

from wpk.control_flow import OPERATORS, sized_by_bodies
from wpk.graph_passes import Dims, called, is_call, proven_shapes, sort_nodes
from wpk.lowering.fallback.closing import is_fallback
from wpk.lowering.fallback.groups import between, grouped
from wpk.lowering.fallback.outline import open_call, outline
from wpk.lowering.flat_graph import read_names

_FEW = 64
"""Numbers of a tensor: what ONNX Runtime does with so many takes less time than a copy of them."""

_BETWEEN = "a few numbers between nodes that ONNX Runtime executes"

_export_node = gs.exporters.onnx_exporter.OnnxExporter.export_node


class HandOver:
    """What is handed to ONNX Runtime of a graph that is lowered again and again.

    Attributes:
        names: Nodes of the graph that the next attempt leaves out.
        notes: Of each call of a group the nodes that were refused, with reasons.
        made: Tensors that calls of groups give.
        shapes: Shapes that inference finds by itself, once something was taken; None before.
    """

    def __init__(self, graph: gs.Graph) -> None:
        """Begin with nothing."""
        self._graph = graph
        self._why: dict[str, str] = {}
        self.names: set[str] = set()
        self.notes: dict[str, str] = {}
        self.made: frozenset[str] = frozenset()
        self.shapes: Mapping[str, Dims] | None = None

    def take(self, refused: Mapping[str, str]) -> bool:
        """Take what an attempt refused; False where ONNX Runtime cannot take it either.

        Args:
            refused: Why, by the graph's nodes.
        """
        nodes = {node.name: node for node in self._graph.nodes}
        if any(is_fallback(nodes[name]) for name in refused):
            return False
        whole = [nodes[name] for name in refused if is_call(nodes[name])]
        if whole:
            return self._opened(whole)
        if self.shapes is None:
            self.shapes = proven_shapes(self._graph)
        self._why.update(refused)
        self.names.update(refused)
        return True

    def take_driven(self, refused: Mapping[str, str]) -> bool:
        """Take it where all of it is control flow whose bodies may be engines; False otherwise.

        Args:
            refused: Why, by the graph's nodes.
        """
        self.shapes = proven_shapes(self._graph) if self.shapes is None else self.shapes
        nodes = [node for node in self._graph.nodes if node.name in refused]
        return all(map(self._may_be_driven, nodes)) and self.take(refused)

    def outline(self) -> bool:
        """Outline what was taken, and what stands between; False where nothing was taken."""
        if not self.names:
            return False
        few = {node.name for node in self._graph.nodes if _is_small(node, self._graph)}
        small = between(self._graph.nodes, self.names, few)
        whole = [node for node in self._graph.nodes if node.name in small and is_call(node)]
        if whole:
            return self._opened(whole)
        self._why.update(dict.fromkeys(small, _BETWEEN))
        self.names.update(small)
        alone = {node.name for node in self._graph.nodes if self._may_be_driven(node)}
        for group in grouped(self._graph.nodes, self.names, alone):
            reasons = [f"{node.op}: {self._why[node.name]}" for node in group]
            call = outline(self._graph, group)
            self.notes[call.name] = "; ".join(dict.fromkeys(reasons))
            self.made |= {tensor.name for tensor in call.outputs}
        sort_nodes(self._graph)
        self.names.clear()
        return True

    def _opened(self, calls: Sequence[gs.Node]) -> bool:
        """Open fused operators, whose nodes the next attempt looks at one by one."""
        for call in calls:
            open_call(self._graph, call)
        sort_nodes(self._graph)
        self.shapes = proven_shapes(self._graph)
        return True

    def _may_be_driven(self, node: gs.Node) -> bool:
        """Tell whether a node has bodies, and a known shape with elements what goes in and must have one that goes out."""
        if node.op not in OPERATORS:
            return False
        shapes = {tensor.name: tensor.shape for tensor in self._graph.inputs}
        shapes |= self.shapes or {}
        known, proto = self._graph.tensors(), _export_node(node)
        read = {name for name in read_names(proto) if name}
        read = {name for name in read if not isinstance(known.get(name), gs.Constant)}
        given = {tensor.name for tensor in node.outputs if tensor.name}
        return all(
            (shape := shapes.get(name)) is not None
            and all(isinstance(size, str) or (size is not None and size > 0) for size in shape)
            for name in read | (given - sized_by_bodies(proto))
        )


def _is_small(node: gs.Node, graph: gs.Graph) -> bool:
    """Whether a node, of ONNX or fused, reads and gives a few numbers only, none of them the model's."""
    outside = {id(tensor) for tensor in graph.outputs}
    if (
        node.op in OPERATORS
        or is_fallback(node)
        or any(id(each) in outside for each in node.outputs)
    ):
        return False
    inner = called(graph, node).nodes if is_call(node) else [node]
    tensors = [
        t for each in (node, *inner) for t in (*each.inputs, *each.outputs) if not t.is_empty()
    ]
    return all(
        tensor.shape is not None
        and all(isinstance(size, int) for size in tensor.shape)
        and prod(tensor.shape) <= _FEW
        for tensor in tensors
    )
