"""Fold arithmetic on shapes, also where only a part of a shape is known.

Each integer tensor that is computed from shapes has a *partial value*: one entry per element, a
number, a symbol (the free batch), or None for a positive number that is not known; truth values
are 0 and 1. Then

    a tensor whose entries are all numbers            ->  constant
    Reshape(x, [batch, 512])                          ->  Reshape(x, [0, 512])    batch = x.shape[0]
    Reshape(x, [n, 512]), n positive                  ->  Reshape(x, [-1, 512])
    Expand(x, [batch, 3]), x of shape [batch, ...]    ->  Expand(x, [1, 3])
    Resize(x, sizes = [batch, c, 8, 8])               ->  Resize(x, scales = [1, 1, 2, 2])
    ConstantOfShape([batch, 512])                     ->  Expand(value, [batch, 512])
    Tile(x, [batch, 1]), x of shape [1, 8]            ->  Expand(x, [batch, 8])

They make the chain that computed the target dead. The target of an Expand that stays is written in
the one form through which shape inference follows a free dimension (`expanded.py`).
"""

import math
import operator
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    given,
    integers,
    is_graph_output,
    is_op,
    rank,
    values,
)
from wpk.graph_passes.core.reshape_target import target_of
from wpk.graph_passes.fold.resize_target import rewrite_sizes
from wpk.graph_passes.movement.repeats.expanded import (
    rewrite_expanded,
    rewrite_filled,
    rewrite_tiled,
)

Known = dict[str, Dims]

# Partial values are only followed through tensors of shape arithmetic, which are short.
_MAX_ENTRIES = 64


class ShapeArithmetic(GraphPass):
    """Replace computed shapes by constants, with 0, 1 or -1 where the batch is free.

    The pass has its own loop, which carries partial values from node to node.
    """

    name = "shape-arithmetic"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Follow partial values in topological order, fold those that are complete."""
        result = PassResult()
        editor = GraphEditor(graph)
        known: Known = {}
        for node in list(graph.nodes):
            if is_op(node, "Reshape", "Expand"):
                result.rewritten += _rewrite_target(editor, node, known, result)
            if is_op(node, "Resize"):
                result.rewritten += rewrite_sizes(editor, node, known, result)
            if is_op(node, "ConstantOfShape"):
                result.rewritten += rewrite_filled(editor, node, known)
            if is_op(node, "Tile"):
                result.rewritten += rewrite_tiled(editor, node, known)
            if is_op(node, "Expand"):
                result.rewritten += rewrite_expanded(editor, node, known)
            if not is_op(node, *_RULES) or not node.outputs:
                continue
            entries = _RULES[node.op](node, known)
            if entries is None or len(entries) > _MAX_ENTRIES:
                continue
            output = node.outputs[0]
            if not _is_complete(entries):
                known[output.name] = entries
            elif is_graph_output(graph, output):
                result.refuse(node, f"'{output.name}' is a graph output")
                known[output.name] = entries
            elif rank(output) in (0, 1):
                shape = () if rank(output) == 0 else (len(entries),)
                dtype = output.dtype or np.int64
                editor.fold_output(node, output, np.array(entries, dtype).reshape(shape))
                result.rewritten += 1
        return result


def _is_complete(entries: Dims) -> bool:
    return all(isinstance(entry, int) for entry in entries)


def _entries(tensor: gs.Tensor | None, known: Known) -> Dims | None:
    if tensor is None:
        return None
    array = values(tensor)
    constant = integers(tensor)
    if array is not None and array.dtype == np.bool_:
        constant = [int(value) for value in array.reshape(-1)]
    if constant is not None:
        return list(constant) if (rank(tensor) or 0) <= 1 else None
    return known.get(tensor.name)


def _of_shape(node: gs.Node, known: Known) -> Dims | None:
    del known
    shape = dims(node.inputs[0])
    end = node.attrs.get("end")
    start = int(node.attrs.get("start", 0))
    return None if shape is None else shape[start : None if end is None else int(end)]


def _of_size(node: gs.Node, known: Known) -> Dims | None:
    del known
    shape = dims(node.inputs[0])
    if shape is None:
        return None
    sizes = [size for size in shape if isinstance(size, int)]
    return [math.prod(sizes) if len(sizes) == len(shape) else None]


def _of_gather(node: gs.Node, known: Known) -> Dims | None:
    data, picks = _entries(node.inputs[0], known), integers(node.inputs[1])
    if data is None or picks is None or node.attrs.get("axis", 0) != 0:
        return None
    if any(not -len(data) <= pick < len(data) for pick in picks):
        return None
    return [data[pick] for pick in picks] if (rank(node.inputs[1]) or 0) <= 1 else None


def _of_slice(node: gs.Node, known: Known) -> Dims | None:
    data = _entries(node.inputs[0], known)
    bounds = [integers(given(node, index)) for index in (1, 2)]
    steps = given(node, 4)
    step = [1] if steps is None else integers(steps)
    if data is None or step is None or any(b is None or len(b) != 1 for b in bounds):
        return None
    start, end = (b[0] for b in bounds if b is not None)
    if step[0] < 1:
        return None
    return data[start : end : step[0]]


def _of_concat(node: gs.Node, known: Known) -> Dims | None:
    if rank(node.outputs[0]) != 1:
        return None
    entries: Dims = []
    for tensor in node.inputs:
        part = _entries(tensor, known)
        if part is None:
            return None
        entries += part
    return entries


def _same(node: gs.Node, known: Known) -> Dims | None:
    return _entries(node.inputs[0], known) if (rank(node.outputs[0]) or 0) <= 1 else None


def _of_cast(node: gs.Node, known: Known) -> Dims | None:
    output = node.outputs[0].dtype
    if output is None or isinstance(output, int) or not np.issubdtype(output, np.integer):
        return None
    return _same(node, known)


def _of_div(node: gs.Node, known: Known) -> Dims | None:
    right = _entries(node.inputs[1], known)
    if right is None or any(not isinstance(entry, int) or entry <= 0 for entry in right):
        return None
    # ONNX truncates integer division, Python floors: equal where both are not negative.
    left = _entries(node.inputs[0], known) or []
    if any(isinstance(entry, int) and entry < 0 for entry in left):
        return None
    return _elementwise(node, known, lambda a, b: a // b)


def _of_equal(node: gs.Node, known: Known) -> Dims | None:
    """Compare entries; an open one is a size, and so differs from every negative number."""
    left, right = _entries(node.inputs[0], known), _entries(node.inputs[1], known)
    if left is None or right is None or len(left) != len(right):
        return None
    entries: Dims = []
    for a, b in zip(left, right, strict=True):
        if isinstance(a, int) and isinstance(b, int):
            entries.append(int(a == b))
        elif any(isinstance(entry, int) and entry < 0 for entry in (a, b)):
            entries.append(0)
        else:
            return None
    return entries


def _of_where(node: gs.Node, known: Known) -> Dims | None:
    choices = [_entries(tensor, known) for tensor in node.inputs]
    if any(entries is None for entries in choices):
        return None
    condition, yes, no = (entries or [] for entries in choices)
    if not len(condition) == len(yes) == len(no) or not _is_complete(condition):
        return None
    return [a if chosen else b for chosen, a, b in zip(condition, yes, no, strict=True)]


def _elementwise(
    node: gs.Node, known: Known, function: Callable[[int, int], int], *, open_result: bool = False
) -> Dims | None:
    """Combine two partial values; an unknown entry is only kept where it must be positive."""
    left, right = _entries(node.inputs[0], known), _entries(node.inputs[1], known)
    if not left or not right or rank(node.outputs[0]) is None:
        return None
    size = max(len(left), len(right))
    left, right = left * (size // len(left) or 1), right * (size // len(right) or 1)
    entries: Dims = []
    for a, b in zip(left, right, strict=False):
        if isinstance(a, int) and isinstance(b, int):
            entries.append(function(a, b))
        elif open_result and not any(isinstance(entry, int) and entry <= 0 for entry in (a, b)):
            entries.append(None)
        else:
            return None
    return entries if len(entries) == size else None


def _rewrite_target(editor: GraphEditor, node: gs.Node, known: Known, result: PassResult) -> int:
    """Replace a partly known target of a Reshape or Expand by a constant; return the count."""
    entries = known.get(node.inputs[1].name)
    if entries is None or isinstance(node.inputs[1], gs.Constant):
        return 0
    source = dims(node.inputs[0])
    if is_op(node, "Expand"):
        target = _expand_entries(source, entries)
    else:
        empty = 0 in entries and node.attrs.get("allowzero", 0)
        target = None if empty else target_of(source or [], entries)
    if target is None:
        result.refuse(node, f"target '{node.inputs[1].name}' is {entries}, too little is known")
        return 0
    constant = editor.constant(f"{node.name}_target", np.array(target, np.int64))
    node.inputs = [node.inputs[0], constant]
    node.attrs.pop("allowzero", None)
    return 1


def _expand_entries(source: Dims | None, entries: Dims) -> list[int] | None:
    """Write a symbol as 1 where the source already has that dimension."""
    if source is None:
        return None
    target: list[int] = []
    for back, entry in enumerate(reversed(entries), start=1):
        if isinstance(entry, int):
            target.insert(0, entry)
        elif entry is not None and back <= len(source) and source[-back] == entry:
            target.insert(0, 1)
        else:
            return None
    return target


_RULES: dict[str, Callable[[gs.Node, Known], Dims | None]] = {
    "Shape": _of_shape,
    "Size": _of_size,
    "Gather": _of_gather,
    "Slice": _of_slice,
    "Concat": _of_concat,
    "Identity": _same,
    "Squeeze": _same,
    "Unsqueeze": _same,
    "Reshape": _same,
    "Cast": _of_cast,
    "Mul": partial(_elementwise, function=operator.mul, open_result=True),
    "Add": partial(_elementwise, function=operator.add),
    "Sub": partial(_elementwise, function=operator.sub),
    "Div": _of_div,
    "Equal": _of_equal,
    "Where": _of_where,
}
