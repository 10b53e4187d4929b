"""Cut the optimized graph into operators: each call of a local function, and each node left bare."""

from collections.abc import Collection

import onnx
import onnx_graphsurgeon as gs

from wpk.dtypes import DType, from_numpy
from wpk.graph_passes import ONNX_DOMAINS
from wpk.lowering.anchors.window import finds_places
from wpk.lowering.body import OperatorBody
from wpk.lowering.refusal import RefusedError


def body_of(node: gs.Node, functions: dict[str, gs.Function]) -> OperatorBody:
    """Return the body of a graph's node: its function's, or the node alone.

    Raises:
        RefusedError: The node calls something that is neither ONNX nor a function of the model.
    """
    function = functions.get(node.op) if node.domain not in ONNX_DOMAINS else None
    if function is not None:
        return OperatorBody(
            node.name,
            tuple(function.nodes),
            tuple(t.name for t in function.inputs),
            *(tensor.name for tensor in function.outputs[:2]),
        )
    if node.domain not in ONNX_DOMAINS:
        raise RefusedError(f"operator {node.domain}::{node.op} is not an ONNX operator")
    output = output_of(node)
    name = "" if output is None else output.name
    return OperatorBody(node.name, (node,), tuple(t.name for t in node.inputs), name)


def output_of(node: gs.Node) -> gs.Tensor | None:
    """Return the one output of a node that an operator computes: of TopK the indices, else the first.

    A MaxPool that gives places computes these.
    """
    finds = node.op == "TopK" or (node.op == "MaxPool" and finds_places(node))
    place = 1 if finds and node.domain in ONNX_DOMAINS else 0
    return node.outputs[place] if place < len(node.outputs) else None


def require_one_output(node: gs.Node, outputs: Collection[str], beside: str = "") -> None:
    """Check that of what a node gives nothing is used but the one output that is computed, and moments of its rows.

    Args:
        node: A node of the graph.
        outputs: Names of the model's outputs.
        beside: Of the moments, where the function that it calls gives such.

    Raises:
        RefusedError: Something else is.
    """
    computed = output_of(node)
    if computed is None or not computed.name:
        raise RefusedError(f"{node.op} without its first output")
    others = [each for each in node.outputs if each is not computed]
    others = others[1:] if beside else others
    if any(t.name and (t.outputs or t.name in outputs) for t in others):
        raise RefusedError(f"{node.op} with several outputs that are used")


def functions_of(graph: gs.Graph) -> dict[str, gs.Function]:
    """Return the model's local functions by name."""
    return {function.name: function for function in graph.functions}


def element_type(tensor: gs.Tensor) -> DType:
    """Return the element type of a graph's tensor.

    Raises:
        RefusedError: wpk has no such type.
    """
    dtype = tensor.dtype
    if isinstance(dtype, int):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    known = from_numpy(dtype) if dtype is not None else None
    if known is None:
        raise RefusedError(f"tensor {tensor.name!r} has element type {tensor.dtype}")
    return known
