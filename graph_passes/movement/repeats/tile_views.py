"""Write a Tile as views around an Expand.

    Tile(x, [1, r])  ->  Reshape(Expand(Reshape(x, [n, 1, d]), [1, r, 1]), [n, r * d])

An axis of one element is expanded as it is. The repeats are constant.
"""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, dims, integers


@dataclass(frozen=True)
class _Tile:
    """A Tile, the shape of its input, and how often it repeats each axis."""

    node: gs.Node
    shape: Dims
    repeats: list[int]


class TileViews(Rule[_Tile]):
    """Replace each Tile by constant numbers."""

    name = "tile-views"
    ops = ("Tile",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Tile | Refusal | None:
        """Match a Tile of a known shape, of which an unknown size is not repeated."""
        shape, repeats = dims(node.inputs[0]), integers(node.inputs[1])
        if (
            shape is None
            or repeats is None
            or len(shape) != len(repeats)
            or min(repeats, default=1) < 1
        ):
            return Refusal(node.name, "its shape or its repeats are not known")
        for axis, (size, count) in enumerate(zip(shape, repeats, strict=True)):
            if not isinstance(size, int) and (axis or count != 1):
                return Refusal(node.name, f"axis {axis} of an unknown size")
        return _Tile(node, shape, repeats)

    def rewrite(self, editor: GraphEditor, match: _Tile) -> None:
        """Insert an axis in front of each that is repeated, of two at a time: copies have few axes."""
        to, x, shape = NodeParts(editor, match.node), match.node.inputs[0], list(match.shape)
        repeated = [axis for axis, count in enumerate(match.repeats) if count != 1]
        for first in range(0, len(repeated), 2) or (0,):
            counts = {axis: match.repeats[axis] for axis in repeated[first : first + 2]}
            x = _repeated(to, x, shape, counts)
            for axis, count in counts.items():
                shape[axis] = int(shape[axis] or 1) * count
        editor.replace(match.node.outputs[0], x)


def _repeated(to: NodeParts, x: gs.Tensor, shape: Dims, counts: dict[int, int]) -> gs.Tensor:
    """The tensor with some of its axes repeated."""
    apart: Dims = []
    grown: Dims = []
    joined: Dims = []
    for axis, size in enumerate(shape):
        count = counts.get(axis, 1)
        if count != 1 and size != 1:
            apart.append(1)
            grown.append(count)
        apart.append(size)
        grown.append(count if size == 1 else size)
        joined.append(size * count if isinstance(size, int) else size)
    repeats = to.ints([size if isinstance(size, int) else 1 for size in grown])
    return to.reshaped(to.add("Expand", to.reshaped(x, apart), repeats, shape=grown), joined)
