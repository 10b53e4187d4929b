"""Divide before a Transpose that takes the first dimension away, rather than behind it.

    Split(Transpose(x))  ->  Transpose of each part of Split(x)

As `batch_in_front` does with what has one output. Vision transformers divide queries, keys and values so:
they are put in front, then parted; kernels need the batch there.
"""

from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import dims
from wpk.graph_passes.movement.turns import Turn, turn_of


class _Parting(NamedTuple):
    """A Split, and the Transpose that it reads."""

    node: gs.Node
    turn: Turn


class TurnedSplits(Rule[_Parting]):
    """Let the parts be turned, each by itself."""

    name = "turned-splits"
    ops = ("Split",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Parting | None:
        """Match a Split along another dimension than the first of what is turned."""
        del graph
        turn = turn_of(node.inputs[0])
        known = all(dims(output) is not None for output in node.outputs if not output.is_empty())
        if turn is None or not known or turn.perm[_axis(node, turn)] == 0:
            return None
        return _Parting(node, turn)

    def rewrite(self, editor: GraphEditor, match: _Parting) -> None:
        """Write a new Split, and a Transpose for each of its outputs."""
        node, turn = match
        old = list(node.outputs)
        parts = [_part(editor, output, turn) for output in old]
        node.inputs = [turn.source, *node.inputs[1:]]
        node.attrs["axis"] = turn.perm[_axis(node, turn)]
        node.outputs = parts
        for output, part in zip(old, parts, strict=True):
            if output.is_empty():
                continue
            turned = editor.add("Transpose", [part], like=output, attrs={"perm": turn.perm})
            editor.replace(output, turned)


def _part(editor: GraphEditor, output: gs.Tensor, turn: Turn) -> gs.Variable:
    if output.is_empty():
        return gs.Variable.empty()
    shape = [output.shape[turn.perm.index(axis)] for axis in range(len(turn.perm))]
    return gs.Variable(editor.new_name(f"{output.name}_part"), output.dtype, shape)


def _axis(node: gs.Node, turn: Turn) -> int:
    return int(node.attrs.get("axis", 0)) % len(turn.perm)
