"""Merge the places of a map where channels lie last, as its convolution writes it.

    Reshape(x)    [n, c, h, w] -> [n, a, b, hw]   ->  Transpose(Reshape(Transpose(x)))    by way of [n, hw, a, b]
    Reshape(y)    [n, a, b, hw] -> [n, c, h, w]   ->  the same, backwards

where a convolution makes x, or reads what y becomes. Exact: elements only change places, and back. Attention
over the places of a map (CoAtNet) splits channels into heads; a kernel reads each head in one piece where they
lie last, and convolutions read and write them so.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.kinds import SPATIAL, is_elementwise
from wpk.graph_passes.core.query import Dims, dims, is_op, producer
from wpk.graph_passes.movement.transposes.turns import turned

_MAP = 4
"""Dimensions of a map: batch, channels, and two of places."""

_TO_LAST, _TO_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]


@dataclass(frozen=True)
class _Merging:
    """A Reshape, and whether it merges the places of a map or parts them."""

    node: gs.Node
    merges: bool


class PlacesFirst(Rule[_Merging]):
    """Write a Reshape between a map and heads as one that leaves places in front of channels."""

    name = "places-first"
    ops = ("Reshape",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Merging | None:
        """Match beside a convolution, where channels become two dimensions or were."""
        del graph
        source, target = dims(node.inputs[0]), dims(node.outputs[0])
        if _merges(source, target) and is_op(_maker(node.inputs[0]), *SPATIAL):
            return _Merging(node, merges=True)
        readers = node.outputs[0].outputs
        if _merges(target, source) and readers and all(is_op(each, *SPATIAL) for each in readers):
            return _Merging(node, merges=False)
        return None

    def rewrite(self, editor: GraphEditor, match: _Merging) -> None:
        """Write the Reshape between two Transposes."""
        node = match.node
        output, shape = node.outputs[0], dims(node.outputs[0]) or []
        inside = [shape[axis] for axis in ([0, 3, 1, 2] if match.merges else _TO_LAST)]
        order = _TO_LAST if match.merges else _TO_FIRST
        first = turned(editor, node.inputs[0], order)
        sizes = np.array([size if isinstance(size, int) else -1 for size in inside], np.int64)
        constant = editor.constant(f"{node.name}_places", sizes)
        middle = editor.add("Reshape", [first, constant], like=output, shape=inside)
        back = _TO_LAST if match.merges else _TO_FIRST
        editor.replace(output, editor.add("Transpose", [middle], like=output, attrs={"perm": back}))


def _merges(whole: Dims | None, heads: Dims | None) -> bool:
    """Whether places become one dimension and channels two: [n, c, h, w] to [n, a, b, hw]."""
    if whole is None or heads is None or len(whole) != _MAP or len(heads) != _MAP:
        return False
    fixed = [size for size in (*whole[1:], *heads[1:]) if isinstance(size, int)]
    if len(fixed) < 2 * (_MAP - 1) or whole[0] != heads[0]:
        return False
    channels, *places = fixed[:3]
    *parts, merged = fixed[3:]
    return prod(parts) == channels and prod(places) == merged and min(places) > 1 and min(parts) > 1


def _maker(tensor: gs.Tensor) -> gs.Node | None:
    """What computes a tensor, before element-wise nodes of one tensor."""
    node = producer(tensor)
    while node is not None and is_elementwise(node):
        read = [each for each in node.inputs if each.inputs]
        if len(read) != 1:
            return node
        node = producer(read[0])
    return node
