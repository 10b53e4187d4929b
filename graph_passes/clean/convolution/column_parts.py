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

from wpk.graph_passes.clean.convolution.window_pixels import window_pixels
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, dims, integers, is_float, window_numbers


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
        names = ("strides", "dilations", "pads")
        numbers = {name: window_numbers(node, name, len(image)) for name in names}
        pixels = window_pixels(image, block, **numbers)
        if rows % prod(block) or pixels.shape[1] != positions:
            return Refusal(
                node.name, f"'{x.name}' has shape {shape}, which are no blocks of {block}"
            )
        table = _table(pixels.reshape(-1), prod(image))
        return _Columns(node, image, rows // prod(block), pixels.size, table)

    def rewrite(self, editor: GraphEditor, match: _Columns) -> None:
        """Select by the table, and sum where it has several rows."""
        to, elements = NodeParts(editor, match.node), match.elements
        x, (count, pixels) = match.node.inputs[0], match.table.shape
        outer: Dims = [x.shape[0], match.channels]
        y = to.reshaped(x, [*outer, elements])
        if bool((match.table == elements).any()):
            edges = to.ints([0, 0, 0, 0, 0, 1])
            y = to.add("Pad", y, edges, shape=[*outer, elements + 1])
        places = to.ints(match.table.reshape(-1))
        y = to.add("Gather", y, places, shape=[*outer, count * pixels], axis=2)
        if count > 1:
            parts = to.reshaped(y, [*outer, count, pixels])
            y = to.add("ReduceSum", parts, to.ints([2]), shape=[*outer, pixels], keepdims=0)
        editor.replace(match.node.outputs[0], to.reshaped(y, [*outer, *match.image]))


def _table(pixels: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Per pixel the elements on it in their order, then the number of elements, which is the place of a 0."""
    elements = np.flatnonzero(pixels >= 0)
    order = elements[np.argsort(pixels[elements], kind="stable")]
    counts = np.bincount(pixels[order], minlength=size)
    ranks = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((max(int(counts.max(initial=0)), 1), size), len(pixels), np.int64)
    table[ranks, pixels[order]] = order
    return table
