"""Tensors of repeated numbers whose shape holds the free batch: the shape is said in one form.

    Expand(c, t), t = [batch, 1, 768]  ->  Expand(c, Concat(Gather(Shape(x), [0]), [1, 768]))
    ConstantOfShape(t)                 ->  Expand(value, Concat(...))
    Tile(x, [batch, 1])                ->  Expand(x, Concat(...))      x of one row

x is an input of the graph. Exporters compute t over many nodes (Equal, Where, Mul) through which
shape inference loses the batch; through this form it does not.
"""

from collections.abc import Mapping

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.query import Dims, dims, made_by, values

_DEFAULT = np.zeros(1, np.float32)
"""What ConstantOfShape fills with where it has no value."""


def rewrite_expanded(editor: GraphEditor, node: gs.Node, known: Mapping[str, Dims]) -> int:
    """Write the target of an Expand in that form where its output has lost a dimension.

    Returns:
        The count of rewrites.
    """
    entries, shape = known.get(node.inputs[1].name), dims(node.outputs[0])
    if entries is None or (shape is not None and None not in shape):
        return 0
    if _is_plain(editor.graph, node.inputs[1]):
        return 0
    target = expand_target(editor, node.name, entries)
    if target is None:
        return 0
    node.inputs = [node.inputs[0], target]
    return 1


def rewrite_filled(editor: GraphEditor, node: gs.Node, known: Mapping[str, Dims]) -> int:
    """Write a ConstantOfShape of a partly known shape as an Expand; return the count of rewrites."""
    entries = known.get(node.inputs[0].name)
    filled = node.attrs.get("value", _DEFAULT)
    value = values(filled) if isinstance(filled, gs.Constant) else np.asarray(filled)
    if entries is None or value is None or not node.outputs or any(n == 0 for n in entries):
        return 0
    target = expand_target(editor, node.name, entries)
    if target is None:
        return 0
    output = node.outputs[0]
    constant = editor.constant(f"{node.name}_value", value.reshape([1] * len(entries)))
    editor.replace(output, editor.add("Expand", [constant, target], like=output, shape=entries))
    return 1


def rewrite_tiled(editor: GraphEditor, node: gs.Node, known: Mapping[str, Dims]) -> int:
    """Write a Tile that repeats axes of one element as an Expand; return the count of rewrites."""
    entries, shape = known.get(node.inputs[1].name), dims(node.inputs[0])
    if entries is None or shape is None or not node.outputs:
        return 0
    sizes = [
        size if count == 1 else count if size == 1 else None
        for size, count in zip(shape, entries, strict=True)
    ]
    target = expand_target(editor, node.name, sizes)
    if target is None:
        return 0
    output = node.outputs[0]
    expanded = editor.add("Expand", [node.inputs[0], target], like=output, shape=sizes)
    editor.replace(output, expanded)
    return 1


def _is_plain(graph: gs.Graph, target: gs.Tensor) -> bool:
    """Whether a target has that form already."""
    concat = made_by(target, "Concat")
    parts = concat.inputs if concat is not None else [target]
    return all(isinstance(part, gs.Constant) or _is_size(graph, part) for part in parts)


def _is_size(graph: gs.Graph, part: gs.Tensor) -> bool:
    pick = made_by(part, "Gather")
    shape = made_by(pick.inputs[0], "Shape") if pick is not None else None
    return shape is not None and any(shape.inputs[0] is each for each in graph.inputs)


def expand_target(editor: GraphEditor, name: str, entries: Dims) -> gs.Tensor | None:
    """Write a shape in that form; None where an entry is open, or no input has its dimension.

    Args:
        editor: Of the graph.
        name: What the names of its nodes begin with.
        entries: The shape.
    """
    parts = []
    for index, entry in enumerate(entries):
        size = f"{name}_size_{index}"
        part = (
            editor.constant(size, np.array([entry], np.int64))
            if isinstance(entry, int)
            else _size(editor, size, entry)
        )
        if part is None:
            return None
        parts.append(part)
    return _integers(editor, "Concat", parts, f"{name}_target", len(parts), {"axis": 0})


def _size(editor: GraphEditor, name: str, symbol: str | None) -> gs.Tensor | None:
    for tensor in editor.graph.inputs:
        shape = dims(tensor) or []
        if symbol is not None and symbol in shape:
            axis = editor.constant(f"{name}_axis", np.array([shape.index(symbol)], np.int64))
            whole = _integers(editor, "Shape", [tensor], f"{name}_shape", len(shape))
            return _integers(editor, "Gather", [whole, axis], name, 1, {"axis": 0})
    return None


def _integers(
    editor: GraphEditor,
    op: str,
    inputs: list[gs.Tensor],
    name: str,
    count: int,
    attrs: Mapping[str, object] | None = None,
) -> gs.Tensor:
    like = gs.Variable(name, np.dtype(np.int64))
    return editor.add(op, inputs, like=like, shape=[count], name=name, attrs=attrs)
