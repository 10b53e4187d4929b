"""Gather the pixels of overlapping windows once, each with all of its channels.

    Gather(Transpose(Gather(x, rows, 2)), columns, ..)  ->  Transpose(Reshape(Gather(pixels of x, places)))

x is an image [b, c, h, w], and its pixels [b, h w, c]: as torch's ``unfold`` cuts blocks with a halo around each (Vaswani et
al. 2021, HaloNet). Exact: no element is computed. Where channels lie last a pixel is one run in memory, and one copy is left
of two gathers and two transposes.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.known import is_constant
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import (
    Dims,
    added_around,
    is_graph_output,
    is_op,
    made_by,
    producer,
    static_shape,
)
from wpk.graph_passes.movement.chains.element_places import Places, moved_from

_MOST_ELEMENTS = 1 << 24
_MOST_NODES = 8
_LAST = [0, 2, 3, 1]
"""The axes of an image with channels last."""


@dataclass(frozen=True)
class _Unfolded:
    """What two Gathers make of an image.

    Attributes:
        last: The last node of the movement.
        image: Its source.
        pixels: The places of its pixels, by the axes of the result but those of batch and channels.
        axis: The channels' axis in the result.
    """

    last: gs.Node
    image: gs.Tensor
    pixels: NDArray[np.int64]
    axis: int


class UnfoldedPixels(Rule[_Unfolded]):
    """Write one Gather of pixels for two of rows and columns."""

    name = "unfolded-pixels"
    ops = ("Gather",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Unfolded | None:
        """Match the second of two Gathers of constant places between which only dimensions change their order."""
        image = _image(node)
        if image is None:
            return None
        last = node
        readers = node.outputs[0].outputs
        if not is_graph_output(graph, node.outputs[0]) and len(readers) == 1:
            last = readers[0] if is_op(readers[0], "Transpose") else node
        result = static_shape(last.outputs[0])
        if result is None or np.prod(result) > _MOST_ELEMENTS:
            return None
        places = moved_from(last.outputs[0], image)
        found = None if places is None else _pixels(places, static_shape(image) or [])
        return found and _Unfolded(last, image, *found)

    def rewrite(self, editor: GraphEditor, match: _Unfolded) -> None:
        """Write the pixels, the Gather, and the order of dimensions that there was."""
        parts, output = NodeParts(editor, match.last), match.last.outputs[0]
        batch, channels, height, width = static_shape(match.image) or []
        rows = _channels_last(parts, match.image)
        rows = parts.reshaped(rows, [batch, height * width, channels])
        places = parts.ints(match.pixels.reshape(-1))
        shape: Dims = [batch, match.pixels.size, channels]
        gathered = parts.add("Gather", rows, places, shape=shape, axis=1)
        whole = parts.reshaped(gathered, [batch, *match.pixels.shape, channels])
        axes = list(range(match.pixels.ndim + 1))
        axes.insert(match.axis, len(axes))
        editor.replace(output, parts.transposed(whole, axes))


def _channels_last(parts: NodeParts, image: gs.Tensor) -> gs.Tensor:
    """The image with channels behind, turned before zeros are added around it: a convolution then stores it so."""
    pad = made_by(image, "Pad")
    added = "no Pad" if pad is None else added_around(pad)
    if pad is None or isinstance(added, str) or len(image.outputs) > 1:
        return parts.transposed(image, _LAST)
    turned = parts.transposed(pad.inputs[0], _LAST)
    moved = parts.ints([side[axis] for side in added for axis in _LAST])
    shape: Dims = [image.shape[axis] for axis in _LAST]
    return parts.add("Pad", turned, moved, *pad.inputs[2:3], shape=shape, **pad.attrs)


def _image(node: gs.Node) -> gs.Tensor | None:
    """What a Gather reads through Transposes and another Gather, where that is an image."""
    tensor, gathers = node.outputs[0], 0
    for _ in range(_MOST_NODES):
        maker = producer(tensor)
        if maker is None or not is_op(maker, "Gather", "Transpose"):
            break
        if is_op(maker, "Gather"):
            if not is_constant(maker.inputs[1]) or len(maker.inputs[1].shape) != 2:
                return None
            gathers += 1
        tensor = maker.inputs[0]
        shape = static_shape(tensor)
        if gathers == 2 and shape is not None and len(shape) == 4:
            return tensor
    return None


def _pixels(places: Places, image: list[int]) -> tuple[NDArray[np.int64], int] | None:
    """The places of pixels, and the axis of channels; None where a result takes pixels apart."""
    batch, channels, *sides = image
    size = int(np.prod(sides))
    if places.shape[0] != batch or not places.size:
        return None
    first = places[0]
    offsets = np.arange(batch).reshape(-1, *[1] * first.ndim) * (channels * size)
    if not (places == first[None] + offsets).all():
        return None
    for axis in range(1, places.ndim):
        if places.shape[axis] != channels:
            continue
        pixels = first.take(0, axis - 1)
        steps = np.arange(channels).reshape(-1, *[1] * (first.ndim - axis))
        whole = np.expand_dims(pixels, axis - 1) + steps * size
        if pixels.max(initial=0) < size and (first == whole).all():
            return pixels, axis
    return None
