"""Take out tensors of no elements: nothing is computed, and nothing needs to be kept in memory.

    op(...) of no elements                   ->  constant of no elements
    Concat(a, nothing, b)                    ->  Concat(a, b)
    Split(x, [n, 0, m])                      ->  Split(x, [n, m])

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
)
from wpk.operators import OPERATORS, OperatorKind

_MOVING = (OperatorKind.ELEMENTWISE, OperatorKind.VIEW, OperatorKind.MOVEMENT)


class EmptyTensors(Rule[gs.Node]):
    """Make constants of results that are empty, and drop empty parts."""

    name = "empty-tensors"

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | None:
        """Match standard nodes that make or join something empty."""
        if node.domain not in ONNX_DOMAINS or any(True for _ in node.subgraphs()):
            return None
        if _empty_results(graph, node) or _has_empty_parts(node):
            return node
        return None

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Fold the results, then drop the parts."""
        node = match
        if _has_empty_parts(node):
            if is_op(node, "Concat"):
                node.inputs = [t for t in node.inputs if not _is_empty(t)]
            else:
                _drop_parts(editor, node)
            if len(node.inputs if is_op(node, "Concat") else node.outputs) == 1:
                _make_identity(node)
        for tensor in _empty_results(editor.graph, node):
            editor.fold_output(node, tensor, _nothing(tensor))


def _nothing(tensor: gs.Tensor) -> np.ndarray:
    return np.zeros(static_shape(tensor) or [0], tensor.dtype)


def _is_empty(tensor: gs.Tensor) -> bool:
    """Tell whether a tensor is known to have no elements."""
    shape = None if tensor.is_empty() else static_shape(tensor)
    return shape is not None and math.prod(shape) == 0


def _empty_results(graph: gs.Graph, node: gs.Node) -> list[gs.Tensor]:
    """The empty outputs that can become constants.

    What a window says of its shape is not believed: it may be larger than what it looks at, which ONNX
    does not allow.
    """
    row = OPERATORS.get(node.op)
    if row is None or row.kind not in _MOVING:
        return []
    return [
        tensor
        for tensor in node.outputs
        if _is_empty(tensor)
        and tensor.dtype is not None
        and not isinstance(tensor.dtype, int)
        and not is_graph_output(graph, tensor)
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
