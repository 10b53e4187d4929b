"""A graph as a plain list of nodes, the bodies of its operators opened.

What a graph was before the passes is kept in this form, since passes rewrite graphs in place; the
same form of what they made of it is compared with that (`wpk.checks.pass_check`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes import RUNTIME_DOMAIN, called, exact_values, is_call, read_tensors

Array = NDArray[np.generic]


@dataclass(frozen=True)
class FlatNode:
    """A node that ONNX defines.

    Attributes:
        proto: The node, over the list's names.
        operator: Name of the graph's node that it belongs to: of the call whose body holds it, or its
            own.
        known_as: The name that the graph gives each output of the node. In a body, names of the
            original graph's tensors live on.
    """

    proto: onnx.NodeProto
    operator: str
    known_as: tuple[str, ...]


@dataclass(frozen=True)
class FlatGraph:
    """A graph without functions.

    Attributes:
        nodes: In an order in which they can run.
        constants: The constants by name, with their exact values where passes know them.
        inputs: Names of the graph's inputs.
        outputs: Names of its outputs.
        opset: Version of ONNX's operators.
    """

    nodes: tuple[FlatNode, ...]
    constants: Mapping[str, Array]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opset: int

    @cached_property
    def makers(self) -> Mapping[str, int]:
        """The place of the node that makes a tensor, by the tensor's name."""
        return {
            name: place
            for place, node in enumerate(self.nodes)
            for name in node.proto.output
            if name  # of an output that is missing there is none
        }


def read_names(node: onnx.NodeProto) -> list[str]:
    """Return what a node reads: its inputs ("" for a missing one), and what its subgraphs read outside."""
    names = list(node.input)
    for attribute in node.attribute:
        graphs = [*attribute.graphs, attribute.g] if attribute.HasField("g") else attribute.graphs
        for graph in graphs:
            own = {each.name for each in (*graph.input, *graph.initializer)}
            for inner in graph.node:
                names += [n for n in read_names(inner) if n and n not in own and n not in names]
                own.update(inner.output)
            results = [each.name for each in graph.output]
            names += [n for n in results if n not in own and n not in names]
    return names


def flatten(graph: gs.Graph) -> FlatGraph:
    """Return the graph as it is now, sorted; later edits of ``graph`` do not reach it."""
    constants: dict[str, Array] = {}
    nodes: list[FlatNode] = []
    for node in graph.nodes:
        nodes += _opened(graph, node, constants) if is_call(node) else [_own(node, constants)]
    for tensor in graph.outputs:
        if isinstance(tensor, gs.Constant):
            constants[tensor.name] = exact_values(tensor)
    return FlatGraph(
        tuple(nodes),
        constants,
        tuple(t.name for t in graph.inputs),
        tuple(t.name for t in graph.outputs),
        int(graph.opset),
    )


def _own(node: gs.Node, constants: dict[str, Array]) -> FlatNode:
    _collect(node, {}, constants)
    proto = gs.exporters.onnx_exporter.OnnxExporter.export_node(node)
    outside = read_names(proto)
    for tensor in read_tensors(node):
        if isinstance(tensor, gs.Constant) and tensor.name in outside:
            constants[tensor.name] = exact_values(tensor)
    return FlatNode(proto, node.name, tuple(t.name for t in node.outputs))


def _opened(graph: gs.Graph, call: gs.Node, constants: dict[str, Array]) -> Iterator[FlatNode]:
    """The nodes of the body of a call; names inside that mean nothing outside get the call's name.

    What ONNX Runtime executes has the graph's own names.
    """
    function = called(graph, call)
    if call.domain == RUNTIME_DOMAIN:
        _collect(call, {}, constants)
        for node in function.nodes:
            yield replace(_own(node, constants), operator=call.name)
        return
    ports = ((function.inputs, call.inputs), (function.outputs, call.outputs))
    names, results = (
        {inner.name: outer.name for inner, outer in zip(*pair, strict=False)} for pair in ports
    )
    _collect(call, {}, constants)
    for node in function.nodes:
        for tensor in (*node.inputs, *node.outputs):
            if tensor.name and tensor.name not in names:
                inside = f"{call.name}/{tensor.name}"
                names[tensor.name] = results.get(tensor.name, inside)
        _collect(node, names, constants)
        proto = gs.exporters.onnx_exporter.OnnxExporter.export_node(node)
        known_as = tuple(proto.output)
        for field in (proto.input, proto.output):
            field[:] = [names.get(name, name) for name in field]
        yield FlatNode(proto, call.name, known_as)


def _collect(node: gs.Node, names: Mapping[str, str], constants: dict[str, Array]) -> None:
    for tensor in node.inputs:
        if isinstance(tensor, gs.Constant):
            constants[names.get(tensor.name, tensor.name)] = exact_values(tensor)
