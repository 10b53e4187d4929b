"""Which nodes ONNX Runtime computes: those that were refused, found attempt by attempt.

lower ─ refused nodes ─▶ operators that hold some are opened ─▶ lower ─ refused nodes ─▶ lower without
them ─ nothing more is refused ─▶ they are outlined in groups ─▶ lower
"""

from collections.abc import Mapping

import onnx_graphsurgeon as gs

from wpk.control_flow import OPERATORS, sized_by_bodies
from wpk.graph_passes import Dims, is_call, proven_shapes, sort_nodes
from wpk.lowering.fallback.closing import is_fallback
from wpk.lowering.fallback.groups import grouped
from wpk.lowering.fallback.outline import open_call, outline
from wpk.lowering.flat_graph import read_names

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
        for call in whole:
            open_call(self._graph, call)
        if whole:
            sort_nodes(self._graph)
        if whole or self.shapes is None:
            self.shapes = proven_shapes(self._graph)
        if whole:
            return True
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
        """Outline what was taken; False where nothing was."""
        if not self.names:
            return False
        alone = {node.name for node in self._graph.nodes if self._may_be_driven(node)}
        for group in grouped(self._graph.nodes, self.names, alone):
            reasons = [f"{node.op}: {self._why[node.name]}" for node in group]
            call = outline(self._graph, group)
            self.notes[call.name] = "; ".join(dict.fromkeys(reasons))
            self.made |= {tensor.name for tensor in call.outputs}
        sort_nodes(self._graph)
        self.names.clear()
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
