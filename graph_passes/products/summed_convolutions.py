"""Make one convolution of those of one tensor that are only added up.

    Conv(x; V, a) + Conv(x; W, b)  ->  Conv(x; V + [W], a + b)      [W]: W in the middle of zeros
    Conv(x; W, b) + (x * s + t)    ->  Conv(x; W + [diag(s)], b + t)

Windows align where the smaller one reads a part of what the larger one reads. Networks that are trained with
branches beside each convolution (RepVGG, Ding et al. 2021, section 3.3) are exported with them. Sums of
weights are in float64, rounded once.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.query import (
    dims,
    floats,
    given,
    made_by,
    pads_by_itself,
    rank,
    same_dims,
    split_constant,
    why_any_shared,
    why_shared,
    window_numbers,
)
from wpk.graph_passes.fold.linear_operator import (
    Vector,
    channel_vector,
    float_weight,
    input_channels,
    output_channels,
    why_not_linear,
)


@dataclass(frozen=True)
class _Sum:
    """A sum, the convolution with the larger window, and what the other side adds to its constants."""

    node: gs.Node
    conv: gs.Node
    weight: Vector
    bias: Vector


class SummedConvolutions(Rule[_Sum]):
    """Replace sums of convolutions, and of what scales their channels, by one convolution."""

    name = "summed-convolutions"
    ops = ("Add",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Sum | Refusal | None:
        """Match sums whose sides read one tensor."""
        first, second = node.inputs
        reasons: list[str] = []
        for side, other in ((first, second), (second, first)):
            conv = made_by(side, "Conv")
            if conv is None or _source(other) is not conv.inputs[0]:
                continue
            reason = _why_not(graph, conv)
            added = _added(graph, conv, other) if reason is None else reason
            if isinstance(added, str):
                reasons.append(added)
                continue
            return _Sum(node, conv, *added)
        return Refusal(node.name, reasons[0]) if reasons else None

    def rewrite(self, editor: GraphEditor, match: _Sum) -> None:
        """Write the convolution."""
        conv, output = match.conv, match.node.outputs[0]
        old, bias = conv.inputs[1], floats(given(conv, 2))
        total = match.bias if bias is None else match.bias + bias
        weight = editor.constant(f"{old.name}_sum", float_weight(conv) + match.weight, old.dtype)
        inputs = [conv.inputs[0], weight]
        if bias is not None or bool(total.any()):
            inputs.append(editor.constant(f"{old.name}_sum_bias", total, old.dtype))
        name = f"{conv.name}_sum"
        summed = editor.add("Conv", inputs, like=output, name=name, attrs=conv.attrs)
        editor.replace(output, summed)


def _source(tensor: gs.Tensor) -> gs.Tensor | None:
    """What a side of a sum is computed from."""
    conv = made_by(tensor, "Conv")
    if conv is not None:
        return conv.inputs[0]
    scaled = _scaled(tensor)
    return None if scaled is None else scaled.source


@dataclass(frozen=True)
class _Scaled:
    """``source * scale + shift``, with the nodes that compute it, the last one first."""

    source: gs.Tensor
    scale: gs.Tensor
    shift: gs.Tensor | None
    nodes: tuple[gs.Node, ...]


def _scaled(tensor: gs.Tensor) -> _Scaled | None:
    adding = made_by(tensor, "Add")
    terms = split_constant(adding) if adding is not None else None
    scaling = made_by(tensor if terms is None else terms[0], "Mul")
    factors = split_constant(scaling) if scaling is not None else None
    if scaling is None or factors is None:
        return None
    if adding is None or terms is None:
        return _Scaled(*factors, None, (scaling,))
    return _Scaled(*factors, terms[1], (adding, scaling))


def _why_not(graph: gs.Graph, conv: gs.Node) -> str | None:
    """Say why a convolution cannot take more terms."""
    if pads_by_itself(conv):
        return f"'{conv.name}' computes how much it pads"
    return why_not_linear(conv) or why_shared(graph, conv.outputs[0])


def _added(graph: gs.Graph, conv: gs.Node, other: gs.Tensor) -> tuple[Vector, Vector] | str:
    """The weights and the bias that the other side of a sum is, in the window of ``conv``; or why it is none."""
    beside = made_by(other, "Conv")
    if beside is None:
        return _diagonal(graph, conv, other)
    reason = _why_not(graph, beside)
    if reason is not None:
        return reason
    for name in ("strides", "dilations"):
        if _numbers(conv, name) != _numbers(beside, name):
            return f"'{conv.name}' and '{beside.name}' have other {name}"
    if conv.attrs.get("group", 1) != beside.attrs.get("group", 1):
        return f"'{conv.name}' and '{beside.name}' have other group"
    pads = zip(_numbers(conv, "pads"), _numbers(beside, "pads"), strict=True)
    begins = [large - small for large, small in pads][: len(_window(conv))]
    if any(step != 1 for step in _numbers(conv, "dilations")) and any(begins):
        return f"'{conv.name}' is dilated"
    placed = _placed(float_weight(beside), _window(conv), begins)
    if placed is None:
        return f"the window of '{beside.name}' is no part of that of '{conv.name}'"
    bias = floats(given(beside, 2))
    return placed, np.zeros(output_channels(conv)) if bias is None else bias


def _diagonal(graph: gs.Graph, conv: gs.Node, other: gs.Tensor) -> tuple[Vector, Vector] | str:
    """Factors and terms of the channels of what ``conv`` reads, the factors as weights of the place itself."""
    scaled = _scaled(other)
    if scaled is None:
        return f"'{other.name}' is made by no convolution and no scaling"
    reason = why_any_shared(graph, [node.outputs[0] for node in scaled.nodes])
    if reason is not None:
        return reason
    channels, dimensions = output_channels(conv), rank(conv.outputs[0]) or 0
    if input_channels(conv) != channels or any(s != 1 for s in _numbers(conv, "strides")):
        return f"'{conv.name}' does not give a place and a channel for each that it reads"
    if not same_dims(dims(conv.inputs[0]), dims(conv.outputs[0])):
        return f"'{conv.name}' gives another shape than it reads"
    factors = channel_vector(scaled.nodes[-1], scaled.scale, dimensions, 1, channels)
    shift: Vector | Refusal = np.zeros(channels)
    if scaled.shift is not None:
        shift = channel_vector(scaled.nodes[0], scaled.shift, dimensions, 1, channels)
    if isinstance(factors, Refusal):
        return factors.reason
    if isinstance(shift, Refusal):
        return shift.reason
    weight = float_weight(conv)
    group = weight.shape[1]
    window = tuple(1 for _ in weight.shape[2:])
    scale = np.zeros((channels, group, *window))
    scale[(np.arange(channels), np.arange(channels) % group)] = factors.reshape(-1, *window)
    begins = _numbers(conv, "pads")[: len(window)]
    if any(step != 1 for step in _numbers(conv, "dilations")) and any(begins):
        return f"'{conv.name}' is dilated"
    placed = _placed(scale, _window(conv), begins)
    if placed is None:
        return f"no weight of '{conv.name}' stands for the place itself"
    return placed, shift


def _placed(weight: Vector, window: list[int], begins: list[int]) -> Vector | None:
    """Weights in a larger window, from some places on; None where they do not fit in."""
    own = weight.shape[2:]
    ends = [begin + size for begin, size in zip(begins, own, strict=True)]
    if any(begin < 0 for begin in begins) or any(e > w for e, w in zip(ends, window, strict=True)):
        return None
    placed = np.zeros((*weight.shape[:2], *window))
    cut = tuple(slice(begin, end) for begin, end in zip(begins, ends, strict=True))
    placed[(slice(None), slice(None), *cut)] = weight
    return placed


def _window(conv: gs.Node) -> list[int]:
    return [int(size) for size in conv.inputs[1].shape[2:]]


def _numbers(conv: gs.Node, name: str) -> list[int]:
    return window_numbers(conv, name, len(_window(conv)))
