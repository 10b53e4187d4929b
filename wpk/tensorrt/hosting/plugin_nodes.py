"""Plugin nodes in the model that TensorRT parses.

TensorRT's parser makes a plugin of a node whose operator it does not know, if a creator of this name, version and
namespace is registered. It hands over the attributes that the creator names: bytes as a tensor of int8, text with a
NUL behind it. Packed constants are inputs, so that they stay weights of the network.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import onnx

from wpk.spec import operator_bytes, operator_id
from wpk.tensorrt.exported import DOMAIN, operator_of
from wpk.tensorrt.operators import Packed, PluginOperator, operator_model

NAME, VERSION, NAMESPACE = "WpkKernel", "1", ""
"""Of the plugin's creator, in every version of wpk (plugins/tensorrt)."""

SPEC, ID = "spec", "id"
"""The creator's fields."""


def with_plugins(model: onnx.ModelProto, plugins: Mapping[str, PluginOperator]) -> onnx.ModelProto:
    """Put plugin nodes in place of operators; each is named like its operator.

    Args:
        model: What `wpk.tensorrt.exported` gives; not changed.
        plugins: By operator.

    Raises:
        ValueError: The model has no such operator, or a plugin does not read or give what the operator does.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    if not plugins:
        return made
    nodes = list(_nodes(model, plugins))
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    for name, plugin in plugins.items():
        made.graph.initializer.extend(
            map(_initializer, _weight_names(name, plugin), plugin.weights)
        )
    read = _names_read(made.graph)
    kept = [each for each in made.graph.initializer if each.name in read]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    made.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return made


def _nodes(
    model: onnx.ModelProto, plugins: Mapping[str, PluginOperator]
) -> Iterator[onnx.NodeProto]:
    waiting = dict(plugins)
    names = frozenset(plugins)
    for node in model.graph.node:
        operator = operator_of(node.name, names)
        if operator is None:
            yield node
        elif operator in waiting:
            yield _plugin_node(model, operator, waiting.pop(operator))
    if waiting:
        raise ValueError(f"the model has no operators {sorted(waiting)}")


def _plugin_node(model: onnx.ModelProto, operator: str, plugin: PluginOperator) -> onnx.NodeProto:
    ports = operator_model(model, operator).graph
    inputs = [port.name for port in ports.input] + _weight_names(operator, plugin)
    outputs = [port.name for port in ports.output]
    spec = plugin.spec
    if (len(inputs), len(outputs)) != (len(spec.inputs), len(spec.outputs)):
        raise ValueError(
            f"operator {operator!r} reads {len(inputs)} and gives {len(outputs)} tensors, its plugin "
            f"{len(spec.inputs)} and {len(spec.outputs)}"
        )
    data = operator_bytes(spec)
    node = onnx.helper.make_node(NAME, inputs, outputs, name=operator, domain=DOMAIN)
    attributes = {
        "plugin_version": VERSION,
        "plugin_namespace": NAMESPACE,
        SPEC: _bytes_tensor(data),
        ID: operator_id(data),
    }
    node.attribute.extend(
        onnx.helper.make_attribute(key, value) for key, value in attributes.items()
    )
    return node


def _bytes_tensor(data: bytes) -> onnx.TensorProto:
    return onnx.helper.make_tensor(SPEC, onnx.TensorProto.INT8, [len(data)], data, raw=True)


def _weight_names(operator: str, plugin: PluginOperator) -> list[str]:
    return [f"{operator}/packed.{number}" for number in range(len(plugin.weights))]


def _initializer(name: str, packed: Packed) -> onnx.TensorProto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(packed.dtype.numpy)
    values = np.ascontiguousarray(packed.array)
    return onnx.helper.make_tensor(name, kind, values.shape, values.tobytes(), raw=True)


def _names_read(graph: onnx.GraphProto) -> set[str]:
    """All names that nodes read, those of subgraphs included."""
    read = {name for node in graph.node for name in node.input}
    for node in graph.node:
        for attribute in node.attribute:
            graphs = (
                [*attribute.graphs, attribute.g] if attribute.HasField("g") else attribute.graphs
            )
            for inner in graphs:
                read |= _names_read(inner) | {port.name for port in inner.output}
    return read | {port.name for port in graph.output}
