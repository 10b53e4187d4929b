"""Repeat what a free dimension would have to find by division, in a node of its own.

    Add(x, y), x: [batch, sequence, 768], y: [1, sequence, 768]    ->  Add(x, Expand(y))
    Mul(x, y), x: [batch, sequence, 768], y: [batch, 1, 768]       ->  Mul(x, Expand(y))

Kernels walk batch and sequence as one extent: a row of x is not told which row of y it meets. The
Expand is a kernel of its own, which is told.
"""

from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import Dims, dims
from wpk.graph_passes.movement.repeats.expanded import expand_target
from wpk.operators import Rewrite, names


class _Spread(NamedTuple):
    """A node, the place of an input of it, and the shape that it is to have."""

    node: gs.Node
    place: int
    shape: Dims


class SpreadRows(Rule[_Spread]):
    """Write an Expand in front of element-wise nodes."""

    name = "spread-rows"
    ops = tuple(names(lambda row: Rewrite.WITHOUT_EXPAND in row.rewrites))

    def match(self, graph: gs.Graph, node: gs.Node) -> _Spread | None:
        """Match an input that has one free dimension of two."""
        del graph
        output = dims(node.outputs[0])
        for place, tensor in enumerate(node.inputs):
            own = None if tensor.is_empty() else dims(tensor)
            shape = None if own is None or output is None else _spread(own, output)
            if shape is not None:
                return _Spread(node, place, shape)
        return None

    def rewrite(self, editor: GraphEditor, match: _Spread) -> None:
        """Write it, if an input of the graph has the dimensions."""
        target = expand_target(editor, match.node.name, match.shape)
        if target is None:
            return
        given = match.node.inputs[match.place]
        wide = editor.add("Expand", [given, target], like=given, shape=match.shape)
        match.node.inputs[match.place] = wide


def _spread(own: Dims, output: Dims) -> Dims | None:
    """The shape with all of the output's free dimensions; None where it needs none of them."""
    ones: Dims = [1] * (len(output) - len(own))
    own = ones + own
    places = [axis for axis, size in enumerate(output) if isinstance(size, str)]
    named = [output[axis] for axis in places]
    has = [axis for axis in places if own[axis] == output[axis]]
    if not has or len(set(named)) < len(named) or None in output or None in own:
        return None
    repeats = [axis for axis in range(places[-1] + 1) if own[axis] == 1 and output[axis] != 1]
    ahead = any(axis < has[-1] or axis in places for axis in repeats)
    return [*output[: places[-1] + 1], *own[places[-1] + 1 :]] if ahead else None
