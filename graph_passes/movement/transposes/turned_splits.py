"""Divide before a Transpose rather than behind it.

    Split(Transpose(x))  ->  Transpose of each part of Split(x)

Where the Transpose takes the first dimension away, as `batch_in_front` does with what has one output: vision
transformers put queries, keys and values in front, then part them, and kernels need the batch there. Where it
leaves that in place, if all parts are factors of products, which read them in place.
"""

from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.kinds import MATRIX, VIEWS
from wpk.graph_passes.core.query import dims, is_op
from wpk.graph_passes.movement.transposes.turns import Turn, transpose_of, turn_of


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
        turn = turn_of(node.inputs[0]) or _turn_of_factors(node)
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


def _turn_of_factors(node: gs.Node) -> Turn | None:
    """The Transpose in front of a Split whose parts are all multiplied."""
    outputs = [output for output in node.outputs if not output.is_empty()]
    return transpose_of(node.inputs[0]) if all(map(_is_multiplied, outputs)) else None


def _is_multiplied(tensor: gs.Tensor) -> bool:
    """Whether products alone read a tensor, directly or through views and factors."""
    return bool(tensor.outputs) and all(
        is_op(reader, *MATRIX)
        or (is_op(reader, "Mul", *VIEWS) and _is_multiplied(reader.outputs[0]))
        for reader in tensor.outputs
    )


def _part(editor: GraphEditor, output: gs.Tensor, turn: Turn) -> gs.Variable:
    if output.is_empty():
        return gs.Variable.empty()
    shape = [output.shape[turn.perm.index(axis)] for axis in range(len(turn.perm))]
    return gs.Variable(editor.new_name(f"{output.name}_part"), output.dtype, shape)


def _axis(node: gs.Node, turn: Turn) -> int:
    return int(node.attrs.get("axis", 0)) % len(turn.perm)
