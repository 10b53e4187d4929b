"""Cut the optimized graph into operators: each call of a local function, and each node left bare."""

import onnx
import onnx_graphsurgeon as gs

from wpk.dtypes import DType, from_numpy
from wpk.graph_passes.query import ONNX_DOMAINS
from wpk.lowering.body import Body
from wpk.lowering.symbols import RefusedError


def body_of(node: gs.Node, functions: dict[str, gs.Function]) -> Body:
    """The body of a graph's node: its function's, or the node alone.

    Raises:
        RefusedError: The node calls something that is neither ONNX nor a function of the model.
    """
    function = functions.get(node.op) if node.domain not in ONNX_DOMAINS else None
    if function is not None:
        return Body(
            node.name,
            tuple(function.nodes),
            tuple(t.name for t in function.inputs),
            function.outputs[0].name,
        )
    if node.domain not in ONNX_DOMAINS:
        raise RefusedError(f"operator {node.domain}::{node.op} is not an ONNX operator")
    used = [t for t in node.outputs if t.name]
    if len(used) != 1 and any(t.outputs for t in used[1:]):
        raise RefusedError(f"{node.op} with several outputs that are used")
    return Body(node.name, (node,), tuple(t.name for t in node.inputs), node.outputs[0].name)


def functions_of(graph: gs.Graph) -> dict[str, gs.Function]:
    """The model's local functions by name."""
    return {function.name: function for function in graph.functions}


def element_type(tensor: gs.Tensor) -> DType:
    """Element type of a graph's tensor.

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
