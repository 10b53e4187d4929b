"""Widen what is joined or enlarged for an output of the graph before that happens, where it is made.

    Cast(Concat(a, b))  ->  Concat(Cast(a), Cast(b))
    Cast(Resize(x))     ->  Resize(Cast(x))             where that is no smaller than x

What makes the parts then writes them as they are given, and in their place; behind a join or a Resize the cast is an
operator of its own, which reads and writes all of the output. Exact for joins; a Resize is not rounded to 16 bits any more.
"""

from math import prod

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.kinds import VIEWS, is_widening
from wpk.graph_passes.core.query import (
    dims,
    is_graph_output,
    is_op,
    made_by,
    why_shared,
)

_MOVES = ("Concat", "Resize")


class CastsBeforeJoins(Rule[tuple[gs.Node, gs.Node]]):
    """Swap a widening cast with the Concat or Resize before it, on the way to an output."""

    name = "casts-before-joins"
    ops = ("Cast",)

    def match(self, graph: gs.Graph, node: gs.Node) -> tuple[gs.Node, gs.Node] | Refusal | None:
        """Match a cast of what is joined or enlarged."""
        move = made_by(node.inputs[0], *_MOVES)
        if move is None or not is_widening(node) or not is_only_given(graph, node.outputs[0]):
            return None
        reason = why_shared(graph, node.inputs[0]) or _why_larger(move)
        return refusal(node, reason) or (node, move)

    def rewrite(self, editor: GraphEditor, match: tuple[gs.Node, gs.Node]) -> None:
        """Cast what is moved, and move what is cast."""
        cast, move = match
        output, attrs = cast.outputs[0], dict(cast.attrs)
        count = len(move.inputs) if is_op(move, "Concat") else 1
        wide = [
            editor.add("Cast", [part], like=output, shape=part.shape, attrs=attrs)
            for part in move.inputs[:count]
        ]
        inputs = [*wide, *move.inputs[count:]]
        editor.replace(output, editor.add(move.op, inputs, like=output, attrs=dict(move.attrs)))


def is_only_given(graph: gs.Graph, tensor: gs.Tensor) -> bool:
    """Whether ``tensor`` becomes outputs of the graph and nothing is computed with it before."""
    if is_graph_output(graph, tensor):
        return not tensor.outputs
    return bool(tensor.outputs) and all(
        is_op(reader, *VIEWS, *_MOVES) and is_only_given(graph, reader.outputs[0])
        for reader in tensor.outputs
    )


def _why_larger(move: gs.Node) -> str | None:
    """Why there would be more to cast before a move than behind it."""
    before, behind = dims(move.inputs[0]), dims(move.outputs[0])
    if not is_op(move, "Resize"):
        return None
    sizes = [size for shape in (before, behind) for size in (shape or [None])[1:]]
    if not all(isinstance(size, int) for size in sizes):
        return f"the sizes of '{move.outputs[0].name}' are not known"
    known = [prod(int(size or 0) for size in (shape or [])[1:]) for shape in (before, behind)]
    return f"{move.op} makes '{move.outputs[0].name}' smaller" if known[1] < known[0] else None
