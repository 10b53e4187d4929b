"""The formats in which TensorRT may hand an operator its tensors, each as a model that wpk optimizes.

A tensor in a channels-last format is a port with its channels last, and a transpose behind it (or in front of it, where
it is an output): the graph passes take such transposes into the layout of the operator's values, so that what is searched
is the operator in that format. Of the 16-bit formats only those whose channels are full vectors are offered: TensorRT does
not promise what lies in padded lanes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from wpk.spec import Format

_CHANNELS_LAST = (0, 2, 3, 1)
_CHANNELS_FIRST = (0, 3, 1, 2)
_IMAGE_RANK = 4
_VECTOR: dict[int, int] = {
    onnx.TensorProto.FLOAT: 1,
    onnx.TensorProto.FLOAT16: 8,
    onnx.TensorProto.BFLOAT16: 8,
}
_FORMAT = {1: Format.HWC, 8: Format.HWC8}


@dataclass(frozen=True)
class Form:
    """An operator with its tensors in certain formats.

    Attributes:
        formats: Of the inputs and then of the outputs, packed constants excepted.
        model: To optimize: its ports have the order of memory.
    """

    formats: tuple[Format, ...]
    model: onnx.ModelProto


def forms_of(model: onnx.ModelProto) -> list[Form]:
    """Everything linear; and, where there are images, all of them with their channels last.

    Args:
        model: Of one operator (`operator_model`).
    """
    ports = [*model.graph.input, *model.graph.output]
    linear = Form((Format.LINEAR,) * len(ports), model)
    formats = tuple(_channels_last(port) for port in ports)
    if formats == linear.formats:
        return [linear]
    turned = onnx.ModelProto()
    turned.CopyFrom(model)
    nodes = list(_turned(turned.graph, formats))
    del turned.graph.node[:]
    turned.graph.node.extend(nodes)
    return [linear, Form(formats, turned)]


def _channels_last(port: onnx.ValueInfoProto) -> Format:
    """The format of an image whose channels fill its vectors, else the linear one."""
    tensor = port.type.tensor_type
    extents = tensor.shape.dim
    vector = _VECTOR.get(tensor.elem_type)
    if vector is None or len(extents) != _IMAGE_RANK or not extents[1].dim_value:
        return Format.LINEAR
    return Format.LINEAR if extents[1].dim_value % vector else _FORMAT[vector]


def _turned(graph: onnx.GraphProto, formats: tuple[Format, ...]) -> Iterator[onnx.NodeProto]:
    """The nodes, with transposes at the ports that are not linear; the ports get the order of memory."""
    inputs, outputs = formats[: len(graph.input)], formats[len(graph.input) :]
    names: dict[str, str] = {}
    for port, form in zip(graph.input, inputs, strict=True):
        if form is not Format.LINEAR:
            names[port.name] = f"{port.name}.channels_first"
            _reorder(port)
            yield _transpose(port.name, names[port.name], _CHANNELS_FIRST)
    last = []
    for port, form in zip(graph.output, outputs, strict=True):
        if form is not Format.LINEAR:
            names[port.name] = f"{port.name}.channels_first"
            _reorder(port)
            last.append(_transpose(names[port.name], port.name, _CHANNELS_LAST))
    for node in graph.node:
        renamed = onnx.NodeProto()
        renamed.CopyFrom(node)
        renamed.input[:] = [names.get(name, name) for name in node.input]
        renamed.output[:] = [names.get(name, name) for name in node.output]
        yield renamed
    yield from last


def _reorder(port: onnx.ValueInfoProto) -> None:
    extents = list(port.type.tensor_type.shape.dim)
    del port.type.tensor_type.shape.dim[:]
    port.type.tensor_type.shape.dim.extend(extents[axis] for axis in _CHANNELS_LAST)


def _transpose(source: str, result: str, order: tuple[int, ...]) -> onnx.NodeProto:
    name = f"{result}.transpose"
    return onnx.helper.make_node("Transpose", [source], [result], name=name, perm=order)
