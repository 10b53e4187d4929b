"""Take the first rows of what was looked up, not of what is looked up with.

    Gather(table, Slice(i, [0], n))          ->  Slice(Gather(table, i), [0], n)
    GatherElements(data, Slice(i, [0], n))   ->  Slice(GatherElements(data, i), [0], n)
    Slice(c, [0], n), all rows of c alike    ->  Expand(c[:1], ...)

of constants, n a free dimension: positions and token types of a sequence whose length is free. A
Slice of fixed length is `constant_folding`'s.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.free_parts import FreePart, free_part
from wpk.graph_passes.core.query import Dims, is_op, made_by, values
from wpk.graph_passes.movement.repeats.expanded import expand_target

Array = NDArray[np.generic]


@dataclass(frozen=True)
class _Rows:
    """A node, all the rows of which a part is wanted, and the Slice that says which."""

    node: gs.Node
    whole: Array
    cut: gs.Node
    part: FreePart


class FreeRows(Rule[_Rows]):
    """Look constants up in constants, and take the rows behind that."""

    name = "free-rows"
    ops = ("Gather", "GatherElements", "Slice")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Rows | None:
        """Match a constant index that is cut, or equal rows."""
        del graph
        cut = node if is_op(node, "Slice") else made_by(node.inputs[1], "Slice")
        part = free_part(cut)
        if cut is None or part is None:
            return None
        if cut is node:
            whole = values(node.inputs[0])
            alike = whole is not None and _alike(whole, part.axis)
            return _Rows(node, whole, node, part) if whole is not None and alike else None
        whole = _looked_up(node, cut)
        return None if whole is None else _Rows(node, whole, cut, part)

    def rewrite(self, editor: GraphEditor, match: _Rows) -> None:
        """Write the Slice, or the Expand, of a new constant."""
        output, axis = match.node.outputs[0], match.part.axis
        shape: Dims = list(match.whole.shape)
        shape[axis] = match.part.dimension
        if _alike(match.whole, axis):
            target = expand_target(editor, match.node.name, shape)
            if target is not None:
                row = editor.constant(f"{output.name}_row", np.take(match.whole, [0], axis))
                editor.replace(
                    output, editor.add("Expand", [row, target], like=output, shape=shape)
                )
                return
        rows = editor.constant(f"{output.name}_rows", match.whole)
        ends = match.cut.inputs[2]
        axes = editor.constant(f"{output.name}_axis", np.array([axis], np.int64))
        starts = editor.constant(f"{output.name}_start", np.array([0], np.int64))
        cut = editor.add("Slice", [rows, starts, ends, axes], like=output, shape=shape)
        editor.replace(output, cut)


def _alike(whole: Array, axis: int) -> bool:
    return whole.size > 0 and bool((whole == np.take(whole, [0], axis)).all())


def _looked_up(node: gs.Node, cut: gs.Node) -> Array | None:
    """What the node would give for the whole index; None where it is not known, or out of bounds."""
    data, numbers = values(node.inputs[0]), values(cut.inputs[0])
    axis = int(node.attrs.get("axis", 0))
    if data is None or numbers is None or data.ndim == 0 or numbers.size == 0:
        return None
    index = numbers.astype(np.int64)
    size = data.shape[axis]
    if index.min() < -size or index.max() >= size:
        return None
    if is_op(node, "Gather"):
        return np.take(data, index, axis=0) if axis == 0 else None
    others = [n for n in range(data.ndim) if n != axis % data.ndim]
    if data.ndim != index.ndim or any(data.shape[n] < index.shape[n] for n in others):
        return None
    within = tuple(
        slice(None) if n not in others else slice(index.shape[n]) for n in range(data.ndim)
    )
    return np.take_along_axis(data[within], index, axis)
