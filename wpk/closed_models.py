"""ONNX models that a plan carries: whole in themselves, with ONNX's own operators and nothing else.

Such a model may come from a stranger. So it is read with limits, and refused where it names a file, an
operator that ONNX does not define, or a type that cannot go in or out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from wpk.dtypes import DType, from_numpy

MAX_BYTES = 2**31 - 1
"""Of a model: protobuf reads no more."""

MAX_NODES = 2**17
"""Those of subgraphs included; the largest exports have some ten thousand."""

OLDEST_OPSET = 11

_DEFAULT_DOMAINS = ("", "ai.onnx")


class ClosedModelError(ValueError):
    """A model is none that a plan carries; the message says why."""


@dataclass(frozen=True)
class ModelPort:
    """An input or output of a model.

    Attributes:
        name: Its name.
        dtype: Its element type; None where wpk has none.
        shape: Its extents; None for one that is not known, all of them where not even their number is.
    """

    name: str
    dtype: DType | None
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class ClosedModel:
    """What a model takes and gives.

    Attributes:
        inputs: In order.
        outputs: In order.
        operators: What ONNX calls its nodes, in order; without those of subgraphs.
    """

    inputs: tuple[ModelPort, ...]
    outputs: tuple[ModelPort, ...]
    operators: tuple[str, ...]


def read_closed_model(data: bytes) -> ClosedModel:
    """Read a model, and check that it is closed.

    Raises:
        ClosedModelError: It is damaged, or is not closed.
    """
    if len(data) > MAX_BYTES:
        raise ClosedModelError(f"has {len(data)} bytes, at most {MAX_BYTES} are read")
    try:
        model = onnx.load_model_from_string(data)
    except (DecodeError, ValueError, RuntimeError) as error:
        raise ClosedModelError(f"is no ONNX model: {_first_line(error)}") from error
    _check_parts(model)
    graph = model.graph
    inputs, outputs = _ports(graph.input, "input"), _ports(graph.output, "output")
    for info in (
        *graph.input,
        *graph.output,
    ):  # the checker asks for a shape, also where nobody knows how many axes
        info.type.tensor_type.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise ClosedModelError(f"is no valid ONNX model: {_first_line(error)}") from error
    return ClosedModel(inputs, outputs, tuple(node.op_type for node in graph.node))


def _check_parts(model: onnx.ModelProto) -> None:
    newest = onnx.defs.onnx_opset_version()
    if [each.domain for each in model.opset_import] not in [[name] for name in _DEFAULT_DOMAINS]:
        domains = sorted({each.domain[:40] for each in model.opset_import})
        raise ClosedModelError(f"uses domains {domains}, and ONNX's own alone is carried")
    version = model.opset_import[0].version
    if not OLDEST_OPSET <= version <= newest:
        raise ClosedModelError(f"uses opset {version}, {OLDEST_OPSET} to {newest} are carried")
    if model.functions or model.training_info:
        raise ClosedModelError("holds functions or training information, which none has")
    for count, node in enumerate(walk(model.graph)):
        if count >= MAX_NODES:
            raise ClosedModelError(f"has more than {MAX_NODES} nodes")
        if node.domain not in _DEFAULT_DOMAINS:
            raise ClosedModelError(f"calls {node.domain[:40]}::{node.op_type[:40]}, not ONNX's own")
    for tensor in _tensors(model.graph):
        if tensor.external_data or tensor.data_location != onnx.TensorProto.DEFAULT:
            raise ClosedModelError(f"keeps tensor {tensor.name[:40]!r} in another file")


def walk(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes of a graph, those of subgraphs included."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from walk(inner)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that are attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """All constants of a graph, those of nodes and of subgraphs included."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
        for inner in subgraphs(node):
            yield from _tensors(inner)


def _ports(infos: "list[onnx.ValueInfoProto]", role: str) -> tuple[ModelPort, ...]:
    names = [info.name for info in infos]
    if "" in names or len(set(names)) != len(names):
        raise ClosedModelError(f"has two {role}s of one name, or one without a name")
    return tuple(_port(info, role) for info in infos)


def _port(info: onnx.ValueInfoProto, role: str) -> ModelPort:
    if not info.type.HasField("tensor_type"):
        raise ClosedModelError(f"has {role} {info.name[:40]!r}, which is no tensor")
    tensor = info.type.tensor_type
    if tensor.elem_type not in onnx.TensorProto.DataType.values():
        raise ClosedModelError(f"has {role} {info.name[:40]!r} of type {tensor.elem_type}")
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
    return ModelPort(info.name, element_type_of(tensor.elem_type), shape)


def element_type_of(code: int) -> DType | None:
    """The element type that ONNX's number stands for; None where wpk has none."""
    try:
        return from_numpy(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)))
    except (KeyError, TypeError):
        return None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200]
