"""Apply constants of the last dimension before a Reshape that leaves it alone.

    Reshape(x) op c  ->  Reshape(x op c)        c: one number for each place of the last dimension

Exact: each element meets the same number. What makes ``x`` can then take the constant into its weights:
LeViT flattens batch and tokens behind each projection to normalise channels.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.kinds import is_anchor, is_elementwise
from wpk.graph_passes.core.query import (
    dims,
    made_by,
    producer,
    rank,
    split_constant,
    why_not_replace,
    why_shared,
)

_OPS = ("Add", "Sub", "Mul", "Div")


class RowsBeforeReshapes(Rule[tuple[gs.Node, gs.Node]]):
    """Swap arithmetic with a constant row and the Reshape that it follows."""

    name = "rows-before-reshapes"
    ops = _OPS

    def match(self, graph: gs.Graph, node: gs.Node) -> tuple[gs.Node, gs.Node] | Refusal | None:
        """Match behind a Reshape of what an operator gives."""
        sides = split_constant(node)
        reshape = made_by(sides[0], "Reshape") if sides is not None else None
        if sides is None or reshape is None:
            return None
        source, constant = reshape.inputs[0], sides[1]
        before, after = dims(source), dims(reshape.outputs[0])
        maker = producer(source)
        if before is None or after is None or not (is_anchor(maker) or is_elementwise(maker)):
            return None
        width = constant.shape[-1] if len(constant.shape) else 1
        is_row = int(np.prod(constant.shape)) == width and len(constant.shape) <= len(after)
        if width == 1 or not is_row or before[-1:] != [width] or after[-1:] != [width]:
            return None
        reason = why_shared(graph, reshape.outputs[0]) or why_shared(graph, source)
        reason = reason or why_not_replace(graph, node.outputs[0], reshape.outputs[0])
        return refusal(node, reason) or (node, reshape)

    def rewrite(self, editor: GraphEditor, match: tuple[gs.Node, gs.Node]) -> None:
        """Write the arithmetic, and the Reshape behind it."""
        node, reshape = match
        source, output = reshape.inputs[0], node.outputs[0]
        inputs = [
            source if tensor is reshape.outputs[0] else _short(editor, tensor, rank(source) or 1)
            for tensor in node.inputs
        ]
        computed = editor.add(node.op, inputs, like=output, shape=dims(source), attrs=node.attrs)
        sizes = list(reshape.inputs)[1:]
        editor.replace(
            output, editor.add("Reshape", [computed, *sizes], like=output, attrs=reshape.attrs)
        )


def _short(editor: GraphEditor, constant: gs.Constant, dimensions: int) -> gs.Tensor:
    """The row without more dimensions than the source has."""
    if len(constant.shape) <= dimensions:
        return constant
    return moved_constant(
        editor.new_name(f"{constant.name}_row"), constant, lambda array: array.reshape(-1)
    )
