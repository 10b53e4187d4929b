"""Write Col2Im as a selection and a sum, since blocks and image are constant.

    Col2Im(x)  ->  ReduceSum of Gather of x by a table: of every pixel, the elements that fall on it

Pixels on which fewer fall than on others read a 0, which a Pad appends to the row of elements.
"""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.clean.window_pixels import window_pixels
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.query import Dims, dims, integers, is_float


@dataclass(frozen=True)
class _Columns:
    """A Col2Im with its table: (elements on a pixel at most, pixels), of places in (blocks, positions)."""

    node: gs.Node
    image: list[int]
    channels: int
    elements: int
    table: NDArray[np.int64]


class ColumnParts(Rule[_Columns]):
    """Replace a Col2Im of constant shapes, whose batch may be free."""

    name = "column-parts"
    ops: ClassVar = ("Col2Im",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Columns | Refusal:
        """Match where the image's and the block's shapes are constant."""
        del graph
        x = node.inputs[0]
        image, block = (integers(tensor) for tensor in node.inputs[1:])
        if image is None or block is None:
            return Refusal(node.name, "the shapes of image and block are not constant")
        if not is_float(x):
            return Refusal(node.name, f"'{x.name}' is of type {x.dtype}")
        shape = dims(x)
        rows, positions = (None, None) if shape is None or len(shape) != 3 else shape[1:]
        if not isinstance(rows, int) or not isinstance(positions, int):
            return Refusal(
                node.name, f"'{x.name}' has shape {shape}: all but the batch must be known"
            )
        pixels = window_pixels(image, block, **_lists(node, len(image)))
        if rows % prod(block) or pixels.shape[1] != positions:
            return Refusal(
                node.name, f"'{x.name}' has shape {shape}, which are no blocks of {block}"
            )
        table = _table(pixels.reshape(-1), prod(image))
        return _Columns(node, image, rows // prod(block), pixels.size, table)

    def rewrite(self, editor: GraphEditor, match: _Columns) -> None:
        """Select by the table, and sum where it has several rows."""
        to, elements = _Writer(editor, match.node, match.channels), match.elements
        count, pixels = match.table.shape
        y = to.seen(match.node.inputs[0], elements)
        if bool((match.table == elements).any()):
            y = to.add("Pad", y, to.ints(0, 0, 0, 0, 0, 1), sizes=[elements + 1])
        places = editor.constant(f"{match.node.name}_places", match.table.reshape(-1))
        y = to.add("Gather", y, places, sizes=[count * pixels], axis=2)
        if count > 1:
            parts = to.seen(y, count, pixels)
            y = to.add("ReduceSum", parts, to.ints(2), sizes=[pixels], keepdims=0)
        editor.replace(match.node.outputs[0], to.seen(y, *match.image))


class _Writer:
    """Adds the nodes that stand for one node: of its batch and channels, and further axes."""

    def __init__(self, editor: GraphEditor, node: gs.Node, channels: int) -> None:
        self.editor, self.node = editor, node
        self.batch, self.channels = node.inputs[0].shape[0], channels

    def add(
        self, op: str, x: gs.Tensor, parameter: gs.Tensor, sizes: list[int], **attrs: object
    ) -> gs.Tensor:
        shape: Dims = [self.batch, self.channels, *sizes]
        name = f"{self.node.name}_{op}"
        return self.editor.add(op, [x, parameter], like=x, shape=shape, name=name, attrs=attrs)

    def seen(self, x: gs.Tensor, *sizes: int) -> gs.Tensor:
        return self.add("Reshape", x, self.ints(0, self.channels, *sizes), sizes=[*sizes])

    def ints(self, *values: int) -> gs.Constant:
        return self.editor.constant(f"{self.node.name}_sizes", np.array(values, np.int64))


def _lists(node: gs.Node, axes: int) -> dict[str, list[int]]:
    counts = {"strides": (1, axes), "dilations": (1, axes), "pads": (0, 2 * axes)}
    return {
        name: [int(each) for each in node.attrs.get(name, [missing] * count)]
        for name, (missing, count) in counts.items()
    }


def _table(pixels: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Per pixel the elements on it in their order, then the number of elements, which is the place of a 0."""
    elements = np.flatnonzero(pixels >= 0)
    order = elements[np.argsort(pixels[elements], kind="stable")]
    counts = np.bincount(pixels[order], minlength=size)
    ranks = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((max(int(counts.max(initial=0)), 1), size), len(pixels), np.int64)
    table[ranks, pixels[order]] = order
    return table
