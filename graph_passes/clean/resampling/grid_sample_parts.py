"""Write GridSample as the places that a grid names, and what is read there.

    place  = ((grid + 1) * length - 1) / 2, or (grid + 1) / 2 * (length - 1) where corners are aligned

What is read at places between elements: `PlacedReading`.
"""

from math import prod
from typing import ClassVar

import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.resampling.placed_reading import PlacedReading
from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import is_float, rank

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names before opset 20."""


class GridSampleParts(Rule[gs.Node]):
    """Replace a GridSample of images or volumes whose batch alone may be free."""

    name = "grid-sample-parts"
    ops: ClassVar = ("GridSample",)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal:
        """Match where sizes are known and no two authorities differ."""
        del graph
        return refusal(node, _why_not(node)) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Compute the place along every axis, and read the elements there."""
        x, grid = match.inputs
        outputs = [int(size) for size in list(grid.shape)[1:-1]]
        to = PlacedReading(
            editor,
            match,
            x,
            prod(outputs),
            grid.dtype,
            mode=_mode(match),
            padding=_text(match, "padding_mode", "zeros"),
            aligned=bool(match.attrs.get("align_corners", 0)),
        )
        read = to.read([_place(to, grid, axis) for axis in range(len(to.lengths))])
        editor.replace(match.outputs[0], to.reshaped(read, [to.batch, to.channels, *outputs]))


def _text(node: gs.Node, name: str, default: str) -> str:
    value = node.attrs.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def _mode(node: gs.Node) -> str:
    mode = _text(node, "mode", "linear")
    return _MODES.get(mode, mode)


def _why_not(node: gs.Node) -> str | None:
    x, grid = node.inputs
    for tensor in (x, grid):
        if not is_float(tensor):
            return f"'{tensor.name}' is of type {tensor.dtype}"
        if rank(tensor) not in (4, 5):
            return f"'{tensor.name}' has shape {tensor.shape}: images and volumes are carried"
        if not all(isinstance(size, int) and size > 0 for size in list(tensor.shape)[1:]):
            return f"'{tensor.name}' has shape {tensor.shape}: all but the batch must be known"
    if x.shape[0] is None or x.shape[0] != grid.shape[0]:
        return f"the batches of '{x.name}' and '{grid.name}' are {x.shape[0]} and {grid.shape[0]}"
    return _why_disputed(node)


def _why_disputed(node: gs.Node) -> str | None:
    padding, lengths = _text(node, "padding_mode", "zeros"), list(node.inputs[0].shape)[2:]
    if padding == "reflection" and node.attrs.get("align_corners", 0) and 1 in lengths:
        return "an axis of one element has no two corners to reflect between"
    return None


def _place(to: PlacedReading, grid: gs.Tensor, axis: int) -> gs.Tensor:
    """Where along an axis elements are wanted; the grid names the last axis first."""
    count, length = len(to.lengths), to.lengths[axis]
    number = count - 1 - axis
    rows = to.reshaped(grid, [to.batch, to.positions, count])
    bounds = (to.ints([number]), to.ints([number + 1]), to.ints([2]))
    one = to.add("Slice", rows, *bounds, shape=[to.batch, to.positions, 1])
    ahead = to.computed("Add", to.cast(to.reshaped(one, [to.batch, 1, to.positions]), to.type), 1)
    if to.aligned:
        return to.computed("Mul", to.computed("Div", ahead, 2), length - 1)
    return to.computed("Div", to.computed("Sub", to.computed("Mul", ahead, length), 1), 2)
