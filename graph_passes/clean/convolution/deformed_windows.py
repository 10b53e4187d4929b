"""Write DeformConv as what its windows read at computed places, and a convolution of that.

    place    = where the window's element would lie + offset
    columns  = x, read at the places (`PlacedReading`), times the mask
    y        = Conv(columns; W, b) with windows of one column: all elements of the window

Elements outside the image are zeros, as in torchvision's operator, from which ONNX has its own.
"""

from math import prod
from typing import ClassVar

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.clean.resampling.placed_reading import PlacedReading
from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import dims, given, is_float, rank, static_shape, window_numbers


class DeformedWindows(Rule[gs.Node]):
    """Replace a DeformConv of images of known sizes; one group of offsets lets the batch be free."""

    name = "deformed-windows"
    ops: ClassVar = ("DeformConv",)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal:
        """Match images all but whose batch is known."""
        del graph
        return refusal(node, _why_not(node)) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Read the columns, and convolve them."""
        x, weights, offset = match.inputs[:3]
        batch, channels, *image = list(x.shape)
        filters, part, *window = static_shape(weights) or []
        taps, out = prod(window), list(offset.shape)[2:]
        pixels = prod(out)
        groups = _offset_groups(match)
        parts = batch * groups if isinstance(batch, int) else batch
        images = x
        if groups > 1:
            images = NodeParts(editor, match).reshaped(x, [parts, channels // groups, *image])
        to = PlacedReading(editor, match, images, taps * pixels, offset.dtype)
        pairs = to.reshaped(offset, [parts, taps, 2, pixels])
        columns = to.read([_place(to, pairs, axis, _base(match, axis)) for axis in range(2)])
        mask = given(match, 4)
        if mask is not None:
            seen = to.reshaped(mask, [parts, 1, taps * pixels])
            columns = to.add("Mul", columns, seen, shape=list(columns.shape))
        columns = to.reshaped(columns, [batch, channels, taps, pixels])
        inputs = [columns, to.reshaped(weights, [filters, part, taps, 1])]
        bias = given(match, 3)
        made = to.add(
            "Conv",
            *inputs,
            *([] if bias is None else [bias]),
            shape=[batch, filters, 1, pixels],
            group=int(match.attrs.get("group", 1)),
            kernel_shape=[taps, 1],
        )
        editor.replace(match.outputs[0], to.reshaped(made, [batch, filters, *out]))


def _why_not(node: gs.Node) -> str | None:
    x, weights, offset = node.inputs[:3]
    if rank(x) != 4:
        return f"'{x.name}' has shape {x.shape}: images are carried"
    if not is_float(x):
        return f"'{x.name}' is of type {x.dtype}"
    for tensor in (x, offset):
        if not all(isinstance(size, int) and size > 0 for size in list(tensor.shape or [None])[1:]):
            return f"'{tensor.name}' has shape {dims(tensor)}: all but the batch must be known"
    if static_shape(weights) is None:
        return f"the shape of '{weights.name}' is not known"
    if _offset_groups(node) > 1 and not isinstance(x.shape[0], int):
        return "it has several groups of offsets for a batch that is free"
    return None


def _offset_groups(node: gs.Node) -> int:
    return int(node.attrs.get("offset_group", 1))


def _base(node: gs.Node, axis: int) -> NDArray[np.int64]:
    """Where along an axis the elements of the windows lie without offsets: (1, elements, pixels)."""
    window = (static_shape(node.inputs[1]) or [])[2:]
    out = [int(size) for size in list(node.inputs[2].shape)[2:]]
    stride, step, pad = (
        window_numbers(node, name, 2)[axis] for name in ("strides", "dilations", "pads")
    )
    element = np.indices(window)[axis].reshape(-1, 1) * step
    places: NDArray[np.int64] = element + np.indices(out)[axis].reshape(1, -1) * stride - pad
    return places[None]


def _place(to: PlacedReading, pairs: gs.Tensor, axis: int, base: NDArray[np.int64]) -> gs.Tensor:
    """Where along an axis every element is wanted; offsets name the first axis first."""
    _, taps, pixels = base.shape
    bounds = (to.ints([axis]), to.ints([axis + 1]), to.ints([2]))
    one = to.add("Slice", pairs, *bounds, shape=[to.batch, taps, 1, pixels])
    offset = to.cast(to.reshaped(one, [to.batch, 1, taps * pixels]), to.type)
    return to.add("Add", offset, to.numbers(base.reshape(1, 1, -1)), shape=list(offset.shape))
