"""Write what is known of a model's outputs, and of matrices that depend on a shape alone, as constants.

    y = op(c1, c2, ...), y a graph output        ->  y = Identity(constant)
    y = Shape(x) or Size(x), y a graph output    ->  y = Identity(constant)        x of a known shape
    EyeLike(x)                                   ->  constant                      x of a known shape

A graph output is made by a node, so a copy of the constant makes it. Other results of constants are
`constant_folding`'s, other shapes `shape_arithmetic`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import (
    ONNX_DOMAINS,
    RANDOM_OPS,
    element_type,
    is_graph_output,
    static_shape,
    values,
)
from wpk.graph_passes.fold.node_values import NotEvaluatedError, exact_node_values, node_values

Array = NDArray[np.generic]

_MOST_BYTES = 2**20
"""A result that is larger would swell the plan."""


@dataclass(frozen=True)
class _Known:
    """A node of one output, and its values, exact ones too."""

    node: gs.Node
    array: Array
    exact: Array | None = None


class KnownResults(Rule[_Known]):
    """Replace nodes whose results follow from constants or shapes alone."""

    name = "known-results"

    def match(self, graph: gs.Graph, node: gs.Node) -> _Known | None:
        """Match a node of one output, which is known."""
        if node.domain not in ONNX_DOMAINS or len(node.outputs) != 1 or node.op in RANDOM_OPS:
            return None
        if node.op == "EyeLike":
            array = _eye(node)
            known = None if array is None else _Known(node, array)
        elif node.op != "Identity" and is_graph_output(graph, node.outputs[0]):
            known = _result(node, graph.opset)
        else:
            return None
        if known is None or known.array.nbytes > _MOST_BYTES:
            return None
        return known

    def rewrite(self, editor: GraphEditor, match: _Known) -> None:
        """Make a constant of the output, or of what a graph output is a copy of."""
        output = match.node.outputs[0]
        if is_graph_output(editor.graph, output):
            constant = editor.constant(f"{output.name}_values", match.array, exact=match.exact)
            editor.replace(output, editor.add("Identity", [constant], like=output))
        else:
            editor.fold_output(match.node, output, match.array)


def _result(node: gs.Node, opset: int) -> _Known | None:
    """What a node of constants gives, or one of a known shape."""
    if node.op in ("Shape", "Size"):
        shape = _of_shape(node)
        return None if shape is None else _Known(node, shape)
    inputs: Sequence[gs.Tensor] = [tensor for tensor in node.inputs if not tensor.is_empty()]
    if any(values(tensor) is None for tensor in inputs) or any(True for _ in node.subgraphs()):
        return None
    try:
        results = node_values(node, opset)
    except NotEvaluatedError:
        return None
    return _Known(node, results[0], exact_node_values(node, opset, results)[0])


def _of_shape(node: gs.Node) -> Array | None:
    shape = static_shape(node.inputs[0])
    if shape is None:
        return None
    if node.op == "Size":
        return np.asarray(np.prod(shape, dtype=np.int64))
    end = node.attrs.get("end")
    part = slice(int(node.attrs.get("start", 0)), None if end is None else int(end))
    return np.array(shape[part], np.int64)


def _eye(node: gs.Node) -> Array | None:
    shape = static_shape(node.inputs[0])
    given = node.attrs.get("dtype")
    dtype = element_type(node.inputs[0]) if given is None else given
    if isinstance(dtype, int):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    if shape is None or dtype is None or len(shape) != 2:
        return None
    ones: Array = np.eye(shape[0], shape[1], k=int(node.attrs.get("k", 0))).astype(dtype)
    return ones
