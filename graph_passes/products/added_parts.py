"""Add zeros around a part rather than write the part back.

    ScatterND(x, rows a..b, Slice(x, a..b) + t)  ->  x + Pad(t)

The rows may be those of any dimension that a Transpose in front brings first, as torch writes what is added in place. Exact:
what is outside the part gets 0. Vision transformers with a class token add terms of positions to the scores of all others
so (Li et al. 2022, MViTv2); the scores then stand in front of their softmax as the product made them.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import (
    dims,
    is_float,
    made_by,
    rank,
    same_dims,
    static_shape,
    values,
    why_any_shared,
    zeros_around,
)
from wpk.graph_passes.movement.chains.reshape_chains import permutation
from wpk.graph_passes.recognise.turned import range_of


@dataclass(frozen=True)
class _Part:
    """A sum that is written over a part of its first operand.

    Attributes:
        node: The ScatterND.
        whole: What is written over.
        perm: That brings its rows first.
        term: What is added to the part.
        start: The part's first row.
    """

    node: gs.Node
    whole: gs.Tensor
    perm: list[int]
    term: gs.Tensor
    start: int


class AddedParts(Rule[_Part]):
    """Add to the whole, with zeros where nothing is added."""

    name = "added-parts"
    ops = ("ScatterND",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Part | Refusal | None:
        """Match a ScatterND of neighbouring rows that are the rows before and a term of the same shape."""
        start = _start(node)
        data, rows = node.inputs[0], node.inputs[2]
        if start is None or node.attrs.get("reduction", "none") != "none":
            return None
        perm = list(range(rank(data) or 0))
        first, second = made_by(data, "Transpose"), made_by(rows, "Transpose")
        if first is not None and second is not None and permutation(first) == permutation(second):
            perm, data, rows = permutation(first) or perm, first.inputs[0], second.inputs[0]
        added = made_by(rows, "Add")
        if added is None or not is_float(data) or static_shape(data) is None:
            return None
        axis = perm[0]
        count = (static_shape(rows) or [0] * len(perm))[axis]
        for part, term in (added.inputs, added.inputs[::-1]):
            taken = range_of(part, data, axis) if not isinstance(part, gs.Constant) else None
            if taken is not None and taken == (start, start + count):
                same = same_dims(dims(term), dims(rows))
                reason = None if same else f"'{term.name}' is repeated where it is added"
                shared = why_any_shared(graph, [rows, node.inputs[2]])
                return refusal(node, reason or shared) or _Part(node, data, perm, term, start)
        return None

    def rewrite(self, editor: GraphEditor, match: _Part) -> None:
        """Write the Pad, the sum, and the Transpose that there was."""
        parts, output = NodeParts(editor, match.node), match.node.outputs[0]
        shape, axis = static_shape(match.whole) or [], match.perm[0]
        inner, term = made_by(match.term, "Pad"), match.term
        before, after = [0] * len(shape), [0] * len(shape)
        if inner is not None and (known := zeros_around(inner)) is not None:
            term, (before, after) = inner.inputs[0], known
        count = (static_shape(match.term) or [])[axis]
        before[axis] += match.start
        after[axis] += shape[axis] - match.start - count
        padded = parts.add(
            "Pad", term, parts.ints([*before, *after]), like=match.whole, mode="constant"
        )
        total = parts.add("Add", match.whole, padded, like=match.whole)
        is_turned = match.perm != sorted(match.perm)
        editor.replace(output, parts.transposed(total, match.perm) if is_turned else total)


def _start(node: gs.Node) -> int | None:
    """The first row that a ScatterND writes, where it writes neighbours in order."""
    indices = values(node.inputs[1])
    if indices is None or indices.ndim != 2 or indices.shape[1] != 1 or not indices.size:
        return None
    rows = indices[:, 0].astype(np.int64)
    is_range = rows[0] >= 0 and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows)))
    return int(rows[0]) if is_range else None
