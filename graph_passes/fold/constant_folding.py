"""Evaluate once what does not depend on the inputs.

    op(c1, c2, ...)  ->  constant        op deterministic, all inputs constant

The numbers are ONNX Runtime's (`node_values`), known before they were rounded where that is cheap. A result that is both big and bigger than what it was
made from is left to run time, since it would only swell the plan.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.known import is_constant
from wpk.graph_passes.core.query import (
    ONNX_DOMAINS,
    RANDOM_OPS,
    is_graph_output,
    is_op,
    static_shape,
    values,
)
from wpk.graph_passes.fold.node_values import NotEvaluatedError, exact_node_values, node_values

# Above this an Expand or Range of constants would outweigh what it saves: reading 64 MiB costs as
# much as a layer. Smaller results, and all results no bigger than their inputs, are folded.
MAX_GROWN_BYTES = 64 * 2**20


@dataclass(frozen=True)
class _Values:
    """A node, and for each output its values, exact ones too, and, where NumPy lacks it, its type."""

    node: gs.Node
    outputs: list[tuple[object, NDArray[np.generic] | None, object]]


class ConstantFolding(Rule[_Values]):
    """Replace nodes with constant inputs by their results, in one sweep in topological order."""

    name = "constant-folding"

    def match(self, graph: gs.Graph, node: gs.Node) -> _Values | Refusal | None:
        """Evaluate; a node whose inputs are all constant and which stays is a refusal."""
        if not _is_candidate(node):
            return None
        reason = _why_not(graph, node)
        if reason is not None:
            return Refusal(node.name, reason)
        if node.op == "Constant" and isinstance(node.attrs.get("value"), gs.Constant):
            stored = node.attrs["value"]
            return _Values(node, [(stored._values, None, stored._export_dtype)])
        try:
            results = node_values(node, graph.opset)
        except NotEvaluatedError as error:
            return Refusal(node.name, str(error))
        exact = exact_node_values(node, graph.opset, results)
        return _Values(node, [(a, b, None) for a, b in zip(results, exact, strict=True)])

    def rewrite(self, editor: GraphEditor, match: _Values) -> None:
        """Make constants of the outputs."""
        node = match.node
        for tensor, (array, exact, dtype) in zip(list(node.outputs), match.outputs, strict=True):
            if not tensor.is_empty():
                editor.fold_output(node, tensor, array, dtype, exact=exact)


def _is_candidate(node: gs.Node) -> bool:
    if node.domain not in ONNX_DOMAINS or not node.outputs:
        return False
    return all(map(is_constant, node.inputs))


def _why_not(graph: gs.Graph, node: gs.Node) -> str | None:
    if node.op in RANDOM_OPS:
        return f"{node.op} is random"
    if is_op(node, "Dropout") and len(node.inputs) > 2:
        return "Dropout in training mode is random"
    if any(True for _ in node.subgraphs()):
        return f"{node.op} holds a subgraph"
    for tensor in node.outputs:
        if is_graph_output(graph, tensor):
            return f"'{tensor.name}' is a graph output"
    for tensor in node.inputs:
        if not tensor.is_empty() and values(tensor) is None:
            return f"constant '{tensor.name}' has a type that NumPy lacks"
    return _why_too_big(node)


def _why_too_big(node: gs.Node) -> str | None:
    arrays = [values(tensor) for tensor in node.inputs]
    inputs = sum(array.nbytes for array in arrays if array is not None)
    for tensor in node.outputs:
        shape = static_shape(tensor)
        if shape is None or tensor.dtype is None or isinstance(tensor.dtype, int):
            continue
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(tensor.dtype).itemsize
        if size > MAX_GROWN_BYTES and size > inputs:
            return f"its result has {size} bytes, its inputs {inputs}, the cap is {MAX_GROWN_BYTES}"
    return None
