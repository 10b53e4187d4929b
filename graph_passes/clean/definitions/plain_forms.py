"""Write rare forms of operators that wpk carries by their usual forms.

MatMul(v, B), MatMul(A, v)           ->  a product of matrices between Unsqueeze and Squeeze
Gemm<beta = b>(A, B, C)              ->  Gemm(A, B, C * b); Gemm(A, B) where b is 0
ReduceSum over no axes               ->  Identity; other reductions: what they do to one number
Slice with a negative step           ->  Gather of the places that it takes
Pad of the leading axis, of 5 axes   ->  Pad between Reshapes that join the axes it leaves alone
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import (
    REDUCTIONS,
    Dims,
    given,
    integers,
    is_float,
    is_op,
    rank,
    static_shape,
)

_PAD_AXES = 4
"""Of the tensor that a Pad reads, the first of which it leaves alone: what its kernel takes."""

_OF_ONE: dict[str, str] = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}
"""What reductions do to a single number; those that are not here leave it as it is."""

_Rewrite = Callable[[GraphEditor], None]


class PlainForms(Rule[_Rewrite]):
    """Replace each form where what decides it is constant."""

    name = "plain-forms"
    ops: ClassVar = ("MatMul", "Gemm", "Slice", "Pad", *REDUCTIONS)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Rewrite | None:
        """Return what rewrites a node of a rare form."""
        del graph
        if is_op(node, "MatMul"):
            return _product_with_vector(node)
        if is_op(node, "Gemm"):
            return _scaled_bias(node)
        if is_op(node, "Slice"):
            return _backwards(node)
        if is_op(node, "Pad"):
            return _joined_pad(node)
        return _over_no_axes(node)

    def rewrite(self, editor: GraphEditor, match: _Rewrite) -> None:
        """Write the usual form."""
        match(editor)


def _product_with_vector(node: gs.Node) -> _Rewrite | None:
    a, b = node.inputs
    ranks, shape = (rank(a), rank(b)), node.outputs[0].shape
    if 1 not in ranks or None in ranks or 0 in ranks or shape is None:
        return None

    def rewrite(editor: GraphEditor) -> None:
        to = NodeParts(editor, node)

        def matrix(x: gs.Tensor, axis: int, wanted: Dims) -> gs.Tensor:
            return to.add("Unsqueeze", x, to.ints([axis]), shape=wanted)

        left = matrix(a, 0, [1, *a.shape]) if ranks[0] == 1 else a
        right = matrix(b, 1, [*b.shape, 1]) if ranks[1] == 1 else b
        grown: Dims = list(shape)
        if ranks[1] == 1:
            grown = [*grown, 1]
        if ranks[0] == 1:
            grown = [*grown[:-1], 1, *grown[-1:]]
        output = node.outputs[0]
        whole = to.add("MatMul", left, right, like=output, shape=grown)
        axes = [axis for axis, size in ((-2, ranks[0]), (-1, ranks[1])) if size == 1]
        editor.replace(output, to.add("Squeeze", whole, to.ints(axes), like=output))

    return rewrite


def _scaled_bias(node: gs.Node) -> _Rewrite | None:
    beta, bias = float(node.attrs.get("beta", 1.0)), given(node, 2)
    if beta == 1.0 or bias is None or not is_float(bias):
        return None

    def rewrite(editor: GraphEditor) -> None:
        scaled = []
        if beta != 0.0:
            factor = editor.constant(f"{node.name}_beta", np.array(beta), bias.dtype)
            scaled = [editor.add("Mul", [bias, factor], like=bias)]
        node.inputs = [*node.inputs[:2], *scaled]
        node.attrs["beta"] = 1.0

    return rewrite


def _over_no_axes(node: gs.Node) -> _Rewrite | None:
    axes = given(node, 1)
    known = node.attrs.get("axes", [] if axes is None else integers(axes))
    if not node.attrs.get("noop_with_empty_axes", 0) or known is None or len(known):
        return None

    def rewrite(editor: GraphEditor) -> None:
        x, output = node.inputs[0], node.outputs[0]
        op = _OF_ONE.get(node.op, "Identity")
        inputs = [x, x] if node.op == "ReduceSumSquare" else [x]
        op = "Mul" if node.op == "ReduceSumSquare" else op
        editor.replace(output, editor.add(op, inputs, like=output))

    return rewrite


def _backwards(node: gs.Node) -> _Rewrite | None:
    bounds = [integers(given(node, index)) for index in (1, 2)]
    steps, shape = integers(given(node, 4)), node.inputs[0].shape
    if steps is None or shape is None or any(each is None for each in bounds):
        return None
    starts, ends = (each or [] for each in bounds)
    axes = integers(given(node, 3)) if given(node, 3) is not None else list(range(len(starts)))
    if axes is None or not any(step < 0 for step in steps):
        return None
    cuts = list(zip(starts, ends, (axis % len(shape) for axis in axes), steps, strict=True))
    if any(step < 0 and not isinstance(shape[axis], int) for _, _, axis, step in cuts):
        return None

    def rewrite(editor: GraphEditor) -> None:
        to, output, x = NodeParts(editor, node), node.outputs[0], node.inputs[0]
        kept = [cut for cut in cuts if cut[3] > 0]
        known: Dims = list(shape)
        if kept:
            for start, end, axis, step in kept:
                size = known[axis]
                known[axis] = (
                    len(range(*_places(start, end, step, size))) if isinstance(size, int) else None
                )
            parts = [to.ints([cut[i] for cut in kept]) for i in range(4)]
            x = to.add("Slice", x, *parts, shape=known)
        for start, end, axis, step in cuts:
            size = known[axis]
            if step < 0 and isinstance(size, int):
                places = list(range(*_places(start, end, step, size)))
                known = [*known[:axis], len(places), *known[axis + 1 :]]
                x = to.add("Gather", x, to.ints(places), shape=known, axis=axis)
        editor.replace(output, x)

    return rewrite


def _places(start: int, end: int, step: int, size: int) -> tuple[int, int, int]:
    """The places that a Slice takes, as ONNX clamps them."""
    start, end = (each + size if each < 0 else each for each in (start, end))
    if step > 0:
        return min(max(start, 0), size), min(max(end, 0), size), step
    return min(max(start, 0), size - 1), min(max(end, -1), size - 1), step


def _joined_pad(node: gs.Node) -> _Rewrite | None:
    shape, pads = static_shape(node.inputs[0]), integers(given(node, 1))
    if shape is None or pads is None or not all(shape):
        return None
    axes = integers(given(node, 3)) if given(node, 3) is not None else list(range(len(shape)))
    if axes is None or static_shape(node.outputs[0]) is None:
        return None
    before, behind = [0] * len(shape), [0] * len(shape)
    for place, axis in enumerate(axes):
        before[axis], behind[axis] = pads[place], pads[place + len(axes)]
    if not (before[0] or behind[0] or len(shape) > _PAD_AXES):
        return None
    groups = _groups([bool(b or e) for b, e in zip(before, behind, strict=True)])
    sizes = [int(np.prod([shape[axis] for axis in group])) for group in groups]
    edges = [sum(each[axis] for axis in group) for each in (before, behind) for group in groups]
    if edges[0] or edges[len(groups)]:
        sizes, edges = [1, *sizes], [0, *edges[: len(groups)], 0, *edges[len(groups) :]]
    if len(sizes) > _PAD_AXES or sizes == shape:
        return None

    def rewrite(editor: GraphEditor) -> None:
        to, x, output = NodeParts(editor, node), node.inputs[0], node.outputs[0]
        joined = to.reshaped(x, list(sizes))
        count = len(sizes)
        grown: Dims = [n + edges[i] + edges[i + count] for i, n in enumerate(sizes)]
        inputs = [joined, to.ints(edges), *node.inputs[2:3]]
        padded = to.add("Pad", *inputs, shape=grown, **node.attrs)
        editor.replace(output, to.reshaped(padded, list(output.shape)))

    return rewrite


def _groups(padded: Sequence[bool]) -> list[list[int]]:
    """Axes that are padded alone, those between them together."""
    groups: list[list[int]] = []
    for axis, changes in enumerate(padded):
        if groups and not changes and not padded[groups[-1][0]]:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups
