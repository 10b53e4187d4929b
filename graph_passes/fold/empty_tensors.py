"""Take out tensors of no elements: nothing is computed, and nothing needs to be kept in memory.

    op(...) of no elements                   ->  constant of no elements
    op(x), x an input of no elements         ->  op(constant of no elements)
    Concat(a, nothing, b)                    ->  Concat(a, b)
    Split(x, [n, 0, m])                      ->  Split(x, [n, m])

There is one tensor of a shape that has no elements, so what is made of it is known: a sum over it is 0.
What remains of a Concat or Split that has one part becomes an Identity. Bodies of functions have such
parts where an attribute leaves nothing over, like the part of a head that is not rotated.
"""

import math
from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import (
    ONNX_DOMAINS,
    given,
    integers,
    is_graph_output,
    is_op,
    static_shape,
    values,
)
from wpk.operators import OPERATORS, OperatorKind

_MOVING = (OperatorKind.ELEMENTWISE, OperatorKind.VIEW, OperatorKind.MOVEMENT)


_SHAPED = ("Reshape", "Expand", "Slice", "Pad", "Tile", "Split", "Squeeze", "Unsqueeze")
"""Operators whose inputs behind the first say which shape comes out."""


class EmptyTensors(Rule[gs.Node]):
    """Make constants of results that are empty, and drop empty parts."""

    name = "empty-tensors"

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | None:
        """Match standard nodes that make or join something empty."""
        if node.domain not in ONNX_DOMAINS or any(True for _ in node.subgraphs()):
            return None
        if _empty_results(graph, node) or _has_empty_parts(node) or _empty_inputs(graph, node):
            return node
        return None

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Fold what is given and the results, then drop the parts."""
        node = match
        for place in _empty_inputs(editor.graph, node):
            tensor = node.inputs[place]
            node.inputs[place] = editor.constant(f"{tensor.name}_empty", _nothing(tensor))
        if _has_empty_parts(node):
            if is_op(node, "Concat"):
                node.inputs = [t for t in node.inputs if not _is_empty(t)]
            else:
                _drop_parts(editor, node)
            if len(node.inputs if is_op(node, "Concat") else node.outputs) == 1:
                _make_identity(node)
        for tensor in _empty_results(editor.graph, node):
            if is_graph_output(editor.graph, tensor):
                constant = editor.constant(f"{tensor.name}_empty", _nothing(tensor))
                editor.replace(tensor, editor.add("Identity", [constant], like=tensor))
            else:
                editor.fold_output(node, tensor, _nothing(tensor))


def _nothing(tensor: gs.Tensor) -> np.ndarray:
    return np.zeros(static_shape(tensor) or [0], tensor.dtype)


def _is_empty(tensor: gs.Tensor) -> bool:
    """Tell whether a tensor is known to have no elements."""
    shape = None if tensor.is_empty() else static_shape(tensor)
    return shape is not None and math.prod(shape) == 0


def _empty_results(graph: gs.Graph, node: gs.Node) -> list[gs.Tensor]:
    """The empty outputs that can become constants, or copies of one where they leave the graph.

    What a window says of its shape is not believed, nor what follows from it: the window may be larger
    than what it looks at, which ONNX does not allow.
    """
    row = OPERATORS.get(node.op)
    if row is None or row.kind not in _MOVING:
        return []
    if node.op in _SHAPED and any(_is_decided_by_run(each) for each in node.inputs[1:]):
        return []
    if _copies_constant(node) or not all(_is_believed(graph, each) for each in node.inputs):
        return []
    return [
        tensor
        for tensor in node.outputs
        if _is_empty(tensor) and tensor.dtype is not None and not isinstance(tensor.dtype, int)
    ]


def _is_decided_by_run(tensor: gs.Tensor) -> bool:
    return not tensor.is_empty() and values(tensor) is None


def _copies_constant(node: gs.Node) -> bool:
    """Whether a node is what was made of an empty output of the graph."""
    return is_op(node, "Identity") and values(node.inputs[0]) is not None


def _is_believed(graph: gs.Graph, tensor: gs.Tensor) -> bool:
    """Whether a tensor has elements, or certainly has none: what is empty became a constant before."""
    if not _is_empty(tensor) or isinstance(tensor, gs.Constant):
        return True
    return _is_input(graph, tensor) or any(map(_copies_constant, tensor.inputs))


def _is_input(graph: gs.Graph, tensor: gs.Tensor) -> bool:
    return any(tensor is each for each in graph.inputs)


def _empty_inputs(graph: gs.Graph, node: gs.Node) -> list[int]:
    """Places of a node's inputs that are inputs of the graph, and empty."""
    return [
        place
        for place, tensor in enumerate(node.inputs)
        if _is_empty(tensor)
        and tensor.dtype is not None
        and not isinstance(tensor.dtype, int)
        and _is_input(graph, tensor)
    ]


def _has_empty_parts(node: gs.Node) -> bool:
    if is_op(node, "Concat"):
        return any(map(_is_empty, node.inputs)) and not all(map(_is_empty, node.inputs))
    sizes = _sizes(node)
    return 0 in sizes and any(sizes) and not _leaves(node, sizes)


def _sizes(node: gs.Node) -> Sequence[int]:
    """The sizes of a Split's parts, where they are given."""
    return (integers(given(node, 1)) or ()) if is_op(node, "Split") else ()


def _leaves(node: gs.Node, sizes: Sequence[int]) -> bool:
    """Whether somebody still reads an empty part."""
    return any(
        not size and not tensor.is_empty()
        for tensor, size in zip(node.outputs, sizes, strict=False)
    )


def _drop_parts(editor: GraphEditor, node: gs.Node) -> None:
    sizes = _sizes(node)
    made = [*node.outputs, *[gs.Variable.empty()] * (len(sizes) - len(node.outputs))]
    kept = [(size, tensor) for size, tensor in zip(sizes, made, strict=True) if size]
    left = editor.constant(f"{node.name}_sizes", np.array([size for size, _ in kept], np.int64))
    node.outputs = [tensor for _, tensor in kept]
    node.inputs = [node.inputs[0], left]


def _make_identity(node: gs.Node) -> None:
    node.op = "Identity"
    node.attrs.clear()
    node.inputs = [node.inputs[0]]
