"""Types and shapes that ONNX inferred of nodes before, by all that decides over them.

A pass changes a few nodes of many, and forms of a model differ in a few operators. What inference says of a node
follows from its operator, its attributes, the types and shapes that it reads, and the values of small constants
among them: where all of these are as they were, the answer is. This holds as long as all sizes are numbers that
follow one from another; else the whole graph is inferred at once (`wpk.graph_passes.core.shapes`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import ONNX_DOMAINS

# Reshape targets, slice bounds, pads, axes, resize scales: at most a few numbers per dimension.
# Larger constants cannot decide a shape that wpk carries.
MAX_SHAPE_VALUES = 1024

Infer = Callable[[onnx.ModelProto], Mapping[str, onnx.TypeProto]]
"""ONNX's inference: types of the tensors of a model that it knows, by name."""

Kind = tuple[Any, tuple[int, ...]]
"""Type and shape of a tensor."""


class UnknownTypeError(Exception):
    """Something that nodes cannot be told of one by one: free or open dimensions, subgraphs, values of shapes."""


@dataclass(frozen=True)
class _Scope:
    """What nodes of a graph mean: its opset and its functions."""

    graph: gs.Graph
    functions: Mapping[tuple[str, str], gs.Function]

    @cached_property
    def imports(self) -> Sequence[onnx.OperatorSetIdProto]:
        domains: Sequence[onnx.OperatorSetIdProto]
        domains = gs.exporters.onnx_exporter.update_import_domains(self.graph)
        return domains


class KnownTypes:
    """What was inferred of nodes, in all graphs that this was given to; make one for a model."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._known: dict[object, tuple[Kind | None, ...]] = {}

    def fill(self, graph: gs.Graph, infer: Infer) -> None:
        """Write types and shapes into all tensors that nodes make, each as inference has them.

        Args:
            graph: Its nodes are in an order in which they can run.
            infer: Asked of each node that is not known yet, in a model of its own.

        Raises:
            UnknownTypeError: The whole graph must be inferred at once.
        """
        scope = _Scope(graph, {(f.domain, f.name): f for f in graph.functions})
        kinds = {id(tensor): _kind(tensor) for tensor in graph.inputs}
        for node in graph.nodes:
            key = self._key(node, kinds, scope)
            made = self._known.get(key)
            if made is None:
                made = self._known[key] = _inferred(node, scope, infer)
            for tensor, kind in zip(node.outputs, made, strict=True):
                if kind is None:
                    continue
                kinds[id(tensor)] = kind
                tensor.dtype = kind[0]
                tensor.shape = list(kind[1])

    def _key(self, node: gs.Node, kinds: Mapping[int, Kind], scope: _Scope) -> object:
        """All that inference looks at in a node.

        Raises:
            UnknownTypeError: It looks at more.
        """
        given = tuple([_given(tensor, kinds) for tensor in node.inputs])
        made = tuple([not tensor.is_empty() for tensor in node.outputs])
        own = node.domain or "", node.op, _attributes(node), scope.graph.opset, given, made
        if node.domain in ONNX_DOMAINS:
            return own
        function = scope.functions.get((node.domain, node.op))
        if function is None:
            raise UnknownTypeError(node.op)
        return own[2:], _described(function)


def _given(tensor: gs.Tensor, kinds: Mapping[int, Kind]) -> object:
    """What a node is told of a tensor that it reads."""
    if isinstance(tensor, gs.Constant):
        return _constant(tensor)
    if tensor.is_empty():
        return None
    kind = kinds.get(id(tensor))
    if kind is None:
        raise UnknownTypeError(tensor.name)
    return kind


def _kind(tensor: gs.Tensor) -> Kind:
    """Type and shape of an input of the graph.

    Raises:
        UnknownTypeError: They are not known to the last number.
    """
    shape = tensor.shape
    if tensor.dtype is None or shape is None or not all(isinstance(n, int) for n in shape):
        raise UnknownTypeError(tensor.name)
    return tensor.dtype, tuple(shape)


def _constant(tensor: gs.Constant) -> object:
    shape = tuple(tensor.shape)
    kind = str(tensor.export_dtype), shape
    return (*kind, tensor.values.tobytes()) if math.prod(shape) <= MAX_SHAPE_VALUES else kind


def _attributes(node: gs.Node) -> tuple[tuple[str, object], ...]:
    return tuple([(name, _value(value)) for name, value in node.attrs.items()])


def _value(value: object) -> object:
    """An attribute by its content.

    Raises:
        UnknownTypeError: It is a subgraph, or one of a function.
    """
    if isinstance(value, gs.Constant):
        return _constant(value)
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, (int, float, str, bytes, type, np.dtype, np.generic)):
        return type(value), repr(value)  # 1 and 1.0 are equal, and not the same
    if isinstance(value, (list, tuple)):
        return tuple([_value(each) for each in value])
    raise UnknownTypeError(type(value).__name__)


def _described(function: gs.Function) -> object:
    """The body of a function without names: tensors by the order of their appearance."""
    numbers: dict[int, int] = {}
    for tensor in function.inputs:
        numbers[id(tensor)] = len(numbers)
    lines: list[object] = [len(numbers), function.opset]
    for node in function.nodes:
        if node.domain not in ONNX_DOMAINS:
            raise UnknownTypeError(node.op)
        sides = [
            [
                _constant(t)
                if isinstance(t, gs.Constant)
                else None
                if t.is_empty()
                else numbers.setdefault(id(t), len(numbers))
                for t in side
            ]
            for side in (node.inputs, node.outputs)
        ]
        lines.append((node.op, _attributes(node), *map(tuple, sides)))
    lines.append(tuple([numbers.get(id(tensor)) for tensor in function.outputs]))
    return tuple(lines)


def _inferred(node: gs.Node, scope: _Scope, infer: Infer) -> tuple[Kind | None, ...]:
    """Ask inference of one node.

    Raises:
        UnknownTypeError: It does not know all.
    """
    found = infer(_model_of(node, scope))
    made = [None if t.is_empty() else _complete(found.get(t.name)) for t in node.outputs]
    return tuple(made)


def _complete(proto: onnx.TypeProto | None) -> Kind:
    if proto is None or not proto.HasField("tensor_type"):
        raise UnknownTypeError("no tensor")
    tensor = proto.tensor_type
    sizes = [int(n.dim_value) for n in tensor.shape.dim if n.HasField("dim_value")]
    if not (tensor.elem_type and tensor.HasField("shape")) or len(sizes) != len(tensor.shape.dim):
        raise UnknownTypeError("an open dimension")
    dtype = gs.importers.onnx_importer.get_numpy_type(tensor.elem_type)
    return dtype or tensor.elem_type, tuple(sizes)


def _model_of(node: gs.Node, scope: _Scope) -> onnx.ModelProto:
    """A model of one node, as inference gets the whole graph: large constants are inputs."""
    exporter = gs.exporters.onnx_exporter
    inputs, initializers = [], []
    for tensor in {t.name: t for t in node.inputs if not t.is_empty()}.values():
        if isinstance(tensor, gs.Constant) and math.prod(tensor.shape) <= MAX_SHAPE_VALUES:
            initializers.append(exporter.OnnxExporter.export_tensor_proto(tensor))
        else:
            inputs.append(typed_input(tensor))
    outputs = [onnx.helper.make_empty_tensor_value_info(t.name) for t in made_by_name(node)]
    nodes = [exporter.OnnxExporter.export_node(node)]
    called = scope.functions.get((node.domain or "", node.op))
    functions = [] if called is None else [exporter.OnnxExporter.export_function(called)]
    return onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "node", inputs, outputs, initializers),
        opset_imports=scope.imports,
        functions=functions,
    )


def made_by_name(node: gs.Node) -> Sequence[gs.Tensor]:
    """Return the outputs of a node that have a name."""
    return [tensor for tensor in node.outputs if not tensor.is_empty()]


def typed_input(tensor: gs.Tensor) -> onnx.ValueInfoProto:
    """Return a tensor as an input of a model: its type and shape, without values."""
    exporter = gs.exporters.onnx_exporter
    if isinstance(tensor, gs.Constant):
        elem_type = exporter.dtype_to_onnx(tensor.export_dtype)
        return onnx.helper.make_tensor_value_info(tensor.name, elem_type, tensor.shape)
    info: onnx.ValueInfoProto = exporter.OnnxExporter.export_value_info_proto(tensor, True)
    return info
