"""The ONNX that TensorRT is given: the optimized graph as plain nodes, without functions or plugins.

A node of an operator's body is named ``operator/node``, and so is a tensor in it, so that a layer of
the engine tells which operator it belongs to. Types and constants are the graph's own, since
TensorRT takes the network as strongly typed.
"""

from collections.abc import Iterator, Mapping

import onnx
import onnx_graphsurgeon as gs

from wpk.errors import UnsupportedError

DOMAIN = "wpk"
SEPARATOR = "/"

_TYPES = {
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.INT8,
    onnx.TensorProto.UINT8,
    onnx.TensorProto.INT32,
    onnx.TensorProto.INT64,
    onnx.TensorProto.BOOL,
}
"""Element types of TensorRT's networks that wpk's graphs hold, too (nvinfer1::DataType)."""


def exported(graph: gs.Graph) -> onnx.ModelProto:
    """An optimized graph as the model that TensorRT parses.

    Args:
        graph: As the graph passes leave it; not changed.

    Raises:
        UnsupportedError: It has tensors of types that TensorRT does not have; all are listed.
    """
    model: onnx.ModelProto = gs.export_onnx(graph)
    functions = {each.name: each for each in model.functions if each.domain == DOMAIN}
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        opened = node.domain == DOMAIN and node.op_type in functions
        nodes += _opened(node, functions[node.op_type]) if opened else [node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    del model.functions[:]
    _import_domains(model)
    _require_types(model.graph)
    return model


def operator_of(name: str, operators: frozenset[str]) -> str | None:
    """The operator that a node or tensor of the exported model belongs to; None for a bare one.

    Args:
        name: Of the node or tensor.
        operators: Names of the graph's operators.
    """
    ends = [at for at, letter in enumerate(name) if letter == SEPARATOR]
    return next((name[:end] for end in ends if name[:end] in operators), None)


def operator_names(graph: gs.Graph) -> frozenset[str]:
    """The names of a graph's operators."""
    return frozenset(node.name for node in graph.nodes if node.domain == DOMAIN)


def _opened(call: onnx.NodeProto, function: onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a call's function, over the names outside."""
    names = dict(zip(function.input, call.input, strict=False))
    names.update(zip(function.output, call.output, strict=False))
    for made in (name for node in function.node for name in node.output if name):
        names.setdefault(made, f"{call.name}{SEPARATOR}{made}")
    for node in function.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = f"{call.name}{SEPARATOR}{node.name}"
        _rename(copy, names)
        yield copy


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename what a node reads and makes, and what its subgraphs read from outside."""
    for field in (node.input, node.output):
        field[:] = [names.get(name, name) for name in field]
    for attribute in node.attribute:
        graphs = [*attribute.graphs, attribute.g] if attribute.HasField("g") else attribute.graphs
        for graph in graphs:
            own = {each.name for each in (*graph.input, *graph.initializer)}
            own.update(name for inner in graph.node for name in inner.output)
            outside = {name: new for name, new in names.items() if name not in own}
            for inner in graph.node:
                _rename(inner, outside)
            for result in graph.output:
                result.name = outside.get(result.name, result.name)


def _import_domains(model: onnx.ModelProto) -> None:
    kept = [each for each in model.opset_import if each.domain != DOMAIN]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def _require_types(graph: onnx.GraphProto) -> None:
    typed = {info.name: info.type.tensor_type.elem_type for info in (*graph.input, *graph.output)}
    typed.update({info.name: info.type.tensor_type.elem_type for info in graph.value_info})
    typed.update({tensor.name: tensor.data_type for tensor in graph.initializer})
    wrong = [
        f"{name}: {onnx.TensorProto.DataType.Name(kind)}"
        for name, kind in typed.items()
        if kind not in _TYPES and kind != onnx.TensorProto.UNDEFINED
    ]
    if wrong:
        raise UnsupportedError(
            f"{len(wrong)} tensors have types that TensorRT does not have:\n    "
            + "\n    ".join(wrong),
            fix="export the model with other types, or build a plan of wpk's own (--engine wpk)",
        )
