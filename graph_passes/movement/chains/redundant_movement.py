"""Remove data movement that a reader can do without.

Slice(Concat(a, b, ...))      ->  a                   the slice is exactly one part
Split(Concat(a, b, ...))      ->  a, b, ...           cut where it was joined
Gather(Concat(a, b, ...), i)  ->  Gather(a, j)        one number, along the same axis
Concat(Concat(a, b), c)       ->  Concat(a, b, c)     along one axis
op(Expand(x), y)              ->  op(x, y)            op broadcasts to the same shape anyway
op(Expand(x), 0)              ->  Expand(op(x, 0))    of scalars: one for every query
Expand(Expand(x))             ->  Expand(x)           the outer one says all sizes
Where(constant, a, b)         ->  a or b              the constant is all true or all false
Transpose(f(Transpose(x)))    ->  f(Transpose(...))   f of one variable, so that the two meet
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    given,
    integers,
    live_nodes,
    made_by,
    rank,
    same_dims,
    values,
    why_not_replace_all,
    why_shared,
)
from wpk.graph_passes.core.sizes import known_sizes, sizes_in
from wpk.graph_passes.movement.chains.reshape_chains import permutation
from wpk.operators import Rewrite, names

_BROADCASTING = names(lambda row: Rewrite.WITHOUT_EXPAND in row.rewrites)
_UNARY = names(lambda row: Rewrite.BEFORE_TRANSPOSE in row.rewrites)

Pairs = Sequence[tuple[gs.Tensor, gs.Tensor]]
"""Tensors, and those that take their places."""


class RedundantMovement(GraphPass):
    """Connect readers past joins, cuts, expansions and choices that change nothing.

    The pass has its own loops: the forms come one after the other, and a Concat may keep one part and
    take another apart.
    """

    name = "redundant-movement"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite each of the forms above."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, *_REWRITES):
            result.rewritten += int(_REWRITES[node.op](editor, node, result))
        for node in live_nodes(graph, *_BROADCASTING):
            result.rewritten += _skip_expand(node) or _compute_before_expand(editor, node)
        return result


def _slice_of_concat(editor: GraphEditor, node: gs.Node, result: PassResult) -> bool:
    concat = made_by(node.inputs[0], "Concat")
    bounds = [integers(given(node, index)) for index in (1, 2, 3)]
    steps = given(node, 4)
    if concat is None or any(b is None or len(b) != 1 for b in bounds):
        return False
    if steps is not None and integers(steps) != [1]:
        return False
    start, end, axis = (b[0] for b in bounds if b is not None)
    edges = _edges(concat)
    dimensions = rank(concat.outputs[0]) or 1
    if edges is None or axis % dimensions != int(concat.attrs["axis"]) % dimensions:
        return False
    start, end = (min(e + edges[-1] if e < 0 else e, edges[-1]) for e in (start, end))
    for index, (low, high) in enumerate(pairwise(edges)):
        if (low, high) == (start, end):
            return _replace(editor, node, [(node.outputs[0], concat.inputs[index])], result)
    return False


def _gather_of_concat(editor: GraphEditor, node: gs.Node, result: PassResult) -> bool:
    """Read the one part that a number picks from."""
    del result
    concat, index = made_by(node.inputs[0], "Concat"), integers(node.inputs[1])
    edges = _edges(concat) if concat is not None else None
    if concat is None or edges is None or index is None or len(node.inputs[1].shape) > 0:
        return False
    dimensions = rank(concat.outputs[0]) or 1
    at = index[0] + edges[-1] if index[0] < 0 else index[0]
    if int(node.attrs.get("axis", 0)) % dimensions != int(concat.attrs["axis"]) % dimensions:
        return False
    for part, (low, high) in zip(concat.inputs, pairwise(edges), strict=True):
        if low <= at < high:
            number = np.array(at - low, np.int64)
            node.inputs = [part, editor.constant(f"{node.name}_index", number)]
            return True
    return False


def _split_of_concat(editor: GraphEditor, node: gs.Node, result: PassResult) -> bool:
    concat = made_by(node.inputs[0], "Concat")
    if concat is None or len(concat.inputs) != len(node.outputs):
        return False
    dimensions = rank(concat.outputs[0])
    axes = [int(n.attrs.get("axis", 0)) for n in (concat, node)]
    if dimensions is None or axes[0] % dimensions != axes[1] % dimensions:
        return False
    pairs = list(zip(node.outputs, concat.inputs, strict=True))
    if not all(same_dims(dims(cut), dims(part)) for cut, part in pairs):
        return False
    return _replace(editor, node, pairs, result)


def _edges(concat: gs.Node) -> list[int] | None:
    """Return where the parts of a Concat begin and end along its axis."""
    edges = [0]
    for tensor in concat.inputs:
        shape = dims(tensor)
        size = None if shape is None else shape[int(concat.attrs["axis"])]
        if not isinstance(size, int):
            return None
        edges.append(edges[-1] + size)
    return edges


def _concat_of_concat(editor: GraphEditor, node: gs.Node, result: PassResult) -> bool:
    dimensions = rank(node.outputs[0])
    parts: list[gs.Tensor] = []
    for tensor in node.inputs:
        inner = made_by(tensor, "Concat")
        mergeable = inner is not None and dimensions is not None
        if inner is None or not mergeable or not _same_axis(inner, node, dimensions or 1):
            parts.append(tensor)
            continue
        reason = why_shared(editor.graph, tensor)
        if reason is not None:
            result.refuse(node, reason)
            parts.append(tensor)
            continue
        parts.extend(inner.inputs)
    if len(parts) == len(node.inputs):
        return False
    node.inputs = parts
    return True


def _same_axis(a: gs.Node, b: gs.Node, dimensions: int) -> bool:
    return bool(int(a.attrs["axis"]) % dimensions == int(b.attrs["axis"]) % dimensions)


def _where(editor: GraphEditor, node: gs.Node, result: PassResult) -> bool:
    condition = values(node.inputs[0])
    if condition is None or condition.size == 0 or bool(condition.any()) != bool(condition.all()):
        return False
    chosen = node.inputs[1 if bool(condition.any()) else 2]
    if not same_dims(dims(chosen), dims(node.outputs[0])):
        return False
    return _replace(editor, node, [(node.outputs[0], chosen)], result)


def _transpose(editor: GraphEditor, node: gs.Node, result: PassResult) -> bool:
    """Move the first Transpose behind f, where it stands beside the second."""
    del result
    between = made_by(node.inputs[0], *_UNARY)
    first = made_by(between.inputs[0], "Transpose") if between is not None else None
    order = permutation(first) if first is not None else None
    if between is None or first is None or order is None:
        return False
    if why_shared(editor.graph, between.outputs[0]) or why_shared(editor.graph, first.outputs[0]):
        return False
    source = first.inputs[0]
    inputs = [source, *list(between.inputs)[1:]]
    moved = editor.add(
        between.op, inputs, like=between.outputs[0], shape=dims(source), attrs=between.attrs
    )
    back = editor.add("Transpose", [moved], like=between.outputs[0], attrs={"perm": order})
    node.inputs = [back]
    return True


def _replace(editor: GraphEditor, node: gs.Node, pairs: Pairs, result: PassResult) -> bool:
    reason = why_not_replace_all(editor.graph, pairs)
    if reason is not None:
        result.refuse(node, reason)
        return False
    for old, new in pairs:
        editor.replace(old, new)
    return True


def _skip_expand(node: gs.Node) -> int:
    """Read x instead of Expand(x) where the other operands give the shape."""
    for index, tensor in enumerate(node.inputs):
        expand = made_by(tensor, "Expand")
        if expand is None:
            continue
        inputs = list(node.inputs)
        inputs[index] = expand.inputs[0]
        if same_dims(_broadcast([dims(t) for t in inputs]), dims(node.outputs[0])):
            node.inputs = inputs
            return 1
    return 0


def _compute_before_expand(editor: GraphEditor, node: gs.Node) -> int:
    """Compute on what was expanded, with numbers."""
    output = node.outputs[0]
    expands = [expand for t in node.inputs if (expand := made_by(t, "Expand")) is not None]
    if len(expands) != 1 or not same_dims(dims(expands[0].outputs[0]), dims(output)):
        return 0
    expanded, source = expands[0].outputs[0], expands[0].inputs[0]
    others = [t for t in node.inputs if t is not expanded]
    if not others or isinstance(source, gs.Constant) or not all(map(_is_scalar, others)):
        return 0
    inputs = [source if t is expanded else t for t in node.inputs]
    shape = _broadcast([dims(t) for t in inputs if not t.is_empty()])
    small = editor.add(node.op, inputs, like=output, shape=shape, attrs=node.attrs)
    editor.replace(output, editor.add("Expand", [small, expands[0].inputs[1]], like=output))
    return 1


def _is_scalar(tensor: gs.Tensor) -> bool:
    """Whether one number without axes of its own is read, or nothing."""
    array = values(tensor)
    return tensor.is_empty() or (array is not None and array.size == 1 and array.ndim < 2)


def _expand(editor: GraphEditor, node: gs.Node, result: PassResult) -> bool:
    """Read what the inner of two Expands repeats."""
    del editor, result
    inner, sizes = made_by(node.inputs[0], "Expand"), sizes_in(node.inputs[1])
    if inner is None or sizes is None or sizes != known_sizes(dims(node.outputs[0])):
        return False
    node.inputs = [inner.inputs[0], node.inputs[1]]
    return True


def _broadcast(shapes: list[Dims | None]) -> Dims | None:
    """Return the shape that operands broadcast to; None in it where two symbols differ."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return None
    result: Dims = []
    for back in range(1, max(len(shape) for shape in known) + 1):
        sizes = [shape[-back] for shape in known if back <= len(shape)]
        wide = {size for size in sizes if size != 1}
        result.insert(0, 1 if not wide else wide.pop() if len(wide) == 1 else None)
    return result


_REWRITES = {
    "Slice": _slice_of_concat,
    "Split": _split_of_concat,
    "Gather": _gather_of_concat,
    "Concat": _concat_of_concat,
    "Expand": _expand,
    "Where": _where,
    "Transpose": _transpose,
}
