"""Convolutions that read some of the channels of a tensor, or write some of those of their result."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    floats,
    given,
    is_op,
    made_by,
    producer,
    why_shared,
)
from wpk.graph_passes.fold.linear_operator import (
    Vector,
    float_weight,
    input_channels,
    output_channels,
    why_not_linear,
)
from wpk.graph_passes.products.channel_places import AXIS, Channels, Places, channel_count
from wpk.operators import ELEMENTWISE

_MOST_GROWTH = 2
"""How many times as many channels a product may read or write."""


@dataclass(frozen=True)
class Made:
    """What a convolution and the element-wise nodes behind it make."""

    conv: gs.Node
    behind: tuple[gs.Node, ...]


def made_by_convolution(graph: gs.Graph, tensor: gs.Tensor) -> Made | None:
    """Return what makes a tensor for one reader: a convolution, and nodes behind it that take one tensor."""
    behind: list[gs.Node] = []
    while why_shared(graph, tensor) is None:
        conv = made_by(tensor, "Conv")
        if conv is not None:
            plain = int(conv.attrs.get("group", 1)) == 1 and why_not_linear(conv) is None
            return Made(conv, tuple(behind)) if plain else None
        node = producer(tensor)
        if node is None or not is_op(node, *ELEMENTWISE) or not _takes_one(node):
            return None
        behind.insert(0, node)
        tensor = node.inputs[0]
    return None


def is_depthwise(conv: gs.Node) -> bool:
    """Whether each channel of a convolution's result is computed from the same one of its input."""
    groups = int(conv.attrs.get("group", 1))
    return groups != 1 and groups == input_channels(conv) == output_channels(conv)


def why_not_wider(conv: gs.Node, width: int, own: int) -> str | None:
    """Say why a convolution cannot read or write ``width`` channels instead of ``own``."""
    window = conv.inputs[1].shape[2:]
    if width > own and (width > _MOST_GROWTH * own or any(size != 1 for size in window)):
        return f"'{conv.name}' would multiply {width} channels instead of {own}"
    return None


def read_among(editor: GraphEditor, conv: gs.Node, channels: Channels) -> gs.Tensor:
    """Write a convolution that reads these channels where they lie; a depthwise one gives them in their places."""
    weight, bias = float_weight(conv), floats(given(conv, 2))
    if is_depthwise(conv):
        order = np.argsort(channels.places)
        weight, bias = weight[order], None if bias is None else bias[order]
    else:
        width = channel_count(channels.source) or 0
        wide = np.zeros((len(weight), width, *weight.shape[2:]))
        for index, place in enumerate(channels.places):  # a channel may be read twice
            wide[:, place] += weight[:, index]
        weight = wide
    return _convolution(editor, conv, channels.source, weight, bias)


def write_among(editor: GraphEditor, made: Made, width: int, places: Places) -> gs.Tensor:
    """Compute what is made as some of ``width`` channels; what the others hold must not be read."""
    weight, bias = float_weight(made.conv), floats(given(made.conv, 2))
    wide = _spread(weight, width, places)
    wide_bias = None if bias is None else _spread(bias, width, places)
    tensor = _convolution(editor, made.conv, made.conv.inputs[0], wide, wide_bias)
    for node in made.behind:
        shape = with_channels(node.outputs[0], width)
        inputs = [tensor, *list(node.inputs)[1:]]
        tensor = editor.add(node.op, inputs, like=node.outputs[0], shape=shape, attrs=node.attrs)
    return tensor


def with_channels(tensor: gs.Tensor, channels: int) -> Dims:
    """Return a tensor's shape with another number of channels."""
    shape: Dims = list(dims(tensor) or [])
    shape[AXIS] = channels
    return shape


def _takes_one(node: gs.Node) -> bool:
    """Whether all inputs but the first are constants of one element."""
    others: Sequence[gs.Tensor] = list(node.inputs)[1:]
    return all(t.is_empty() or (isinstance(t, gs.Constant) and t.values.size == 1) for t in others)


def _spread(array: Vector, width: int, places: Places) -> Vector:
    wide = np.zeros((width, *array.shape[1:]))
    wide[places] = array
    return wide


def _convolution(
    editor: GraphEditor, conv: gs.Node, source: gs.Tensor, weight: Vector, bias: Vector | None
) -> gs.Tensor:
    old, like = conv.inputs[1], conv.outputs[0]
    inputs = [source, editor.constant(f"{old.name}_placed", weight, old.dtype)]
    if bias is not None:
        inputs.append(editor.constant(f"{conv.inputs[2].name}_placed", bias, old.dtype))
    shape, name = with_channels(like, len(weight)), f"{conv.name}_placed"
    return editor.add("Conv", inputs, like=like, shape=shape, name=name, attrs=conv.attrs)
