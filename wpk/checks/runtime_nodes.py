"""Single nodes, executed by ONNX Runtime in fp32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from wpk.checks.float64_nodes import Array, NodeEvaluator, told_apart, widened
from wpk.dtypes import is_float
from wpk.graph_passes import open_session, run_session
from wpk.lowering.flat_graph import read_names

_FLOATS = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE)


def execute_node(
    node: onnx.NodeProto, inputs: Sequence[Array | None], opsets: Mapping[str, int]
) -> list[Array]:
    """Return what ONNX Runtime computes; its exceptions share no base class.

    Args:
        node: Any node of ONNX's own domain; a cast to another floating point type goes to fp32.
        inputs: One for each of its `read_names`; floating point ones in fp32.
        opsets: Versions of the domains.
    """
    node = told_apart(node)
    given = {n: a for n, a in zip(read_names(node), inputs, strict=True) if a is not None}
    graph = onnx.helper.make_graph(
        [_fp32_node(node)],
        "node",
        [_port(name, array) for name, array in given.items()],
        [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in node.output if n],
    )
    imports = [onnx.helper.make_opsetid(*each) for each in opsets.items()]
    model = onnx.helper.make_model(graph, opset_imports=imports)
    model.ir_version = onnx.helper.find_min_ir_version_for(imports, ignore_unknown=True)
    return run_session(open_session(model.SerializeToString()), given)


def narrowed(array: Array) -> Array:
    """Return floating point numbers in fp32; anything else as it is."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32) if is_float(widened(array).dtype) else array


class RuntimeEvaluator(NodeEvaluator):
    """One node, evaluated by ONNX Runtime where onnx's reference cannot."""

    def __init__(self, node: onnx.NodeProto, opset: int) -> None:
        """Prepare; unlike the reference, which is not asked."""
        self.node, self.opset, self.cast_type = node, opset, None
        self.inputs = [name for name in read_names(node) if name]

    def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
        """The node's outputs, floating point ones widened to float64; ONNX Runtime's exceptions are passed on."""
        narrow = [None if each is None else narrowed(each) for each in arrays]
        found = execute_node(self.node, narrow, {"": self.opset})
        return [widened(np.asarray(each)) for each in found]


def _fp32_node(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node with casts to other floating point types as casts to fp32."""
    if node.op_type != "Cast":
        return node
    narrow = onnx.NodeProto()
    narrow.CopyFrom(node)
    for attribute in narrow.attribute:
        if attribute.name == "to" and attribute.i in _FLOATS:
            attribute.i = onnx.TensorProto.FLOAT
    return narrow


def _port(name: str, array: Array) -> onnx.ValueInfoProto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnx.helper.make_tensor_value_info(name, kind, array.shape)
