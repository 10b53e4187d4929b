"""Which nodes may compute in a 16-bit type, and what stands in the way of the others."""

import math

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.graph_passes.core.kinds import is_elementwise
from wpk.graph_passes.core.query import ONNX_DOMAINS, element_type, is_op, values
from wpk.operators import names

# A scalar that changes by more than this when rounded is a threshold or an epsilon that the type
# cannot hold: far above the rounding of bf16 (2^-8), far below the loss of a subnormal.
MAX_SCALAR_ERROR = 2.0**-7

SENSITIVE = names(lambda row: row.is_sensitive)
"""Long sums, statistics and steep functions: computed in fp32 whatever the precision."""

_ONNX_TYPES = {DType.FP16: onnx.TensorProto.FLOAT16, DType.BF16: onnx.TensorProto.BFLOAT16}
_SCHEMA_TYPES = {DType.FP16: "tensor(float16)", DType.BF16: "tensor(bfloat16)"}


def onnx_type(dtype: DType) -> int:
    """Return the number that ONNX gives a 16-bit type."""
    return int(_ONNX_TYPES[dtype])


def variable_type(dtype: DType) -> object:
    """Return the type that graphsurgeon keeps for a variable: NumPy's, else ONNX's number."""
    return np.dtype(np.float16) if dtype is DType.FP16 else onnx_type(dtype)


def is_fp32(tensor: gs.Tensor) -> bool:
    """Tell whether ``tensor`` holds fp32 numbers."""
    dtype = element_type(tensor)
    return not isinstance(dtype, int) and dtype is not None and np.dtype(dtype) == np.float32


def why_not_typed(node: gs.Node, opset: int, dtype: DType) -> str | None:
    """Say why ``node`` cannot compute in ``dtype``; None when it can."""
    if node.domain not in ONNX_DOMAINS:
        return f"{node.op} is not a standard operator"
    if any(True for _ in node.subgraphs()):
        return f"{node.op} holds a subgraph"
    if is_op(node, "Cast"):
        return None
    try:
        schema = onnx.defs.get_schema(node.op, opset, "")
    except onnx.defs.SchemaError:
        return f"{node.op} is not an operator of opset {opset}"
    read = _formals(schema, node)
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    for name, tensor in zip(read, node.inputs, strict=True):
        if is_fp32(tensor) and _SCHEMA_TYPES[dtype] not in allowed.get(
            name, [_SCHEMA_TYPES[dtype]]
        ):
            return f"{node.op} has no {dtype} form at opset {opset}"
    if is_fp32(node.outputs[0]) and str(schema.outputs[0].type_str) not in read:
        return f"the output of {node.op} has a type of its own"
    return None


def typed_inputs(node: gs.Node, opset: int) -> list[bool]:
    """Say for each input whether it is fp32 and follows the node's type.

    Scales of Resize do not, and neither does what is only asked for its shape: a cast for that
    reader alone would keep the cast from becoming part of the others.
    """
    if is_op(node, "Cast", "Shape", "Size"):
        return [False]
    schema = onnx.defs.get_schema(node.op, opset, "")
    names = {c.type_param_str for c in schema.type_constraints}
    formals = _formals(schema, node)
    return [n in names and is_fp32(t) for n, t in zip(formals, node.inputs, strict=True)]


def _formals(schema: onnx.defs.OpSchema, node: gs.Node) -> list[str]:
    """Return the type parameters of the inputs; the last one repeats where it is variadic."""
    last = len(schema.inputs) - 1
    return [str(schema.inputs[min(index, last)].type_str) for index in range(len(node.inputs))]


def why_not_held(node: gs.Node, dtype: DType) -> str | None:
    """Say which constant of ``node`` a 16-bit type cannot hold."""
    for tensor in node.inputs:
        if not isinstance(tensor, gs.Constant) or not is_fp32(tensor):
            continue
        array = values(tensor)
        if array is None or array.size == 0:
            continue
        reason = _why_too_large(array, dtype)
        if reason is None and is_elementwise(node) and array.size == 1:
            reason = _why_rounded_away(array, dtype)
        if reason is not None:
            return f"'{tensor.name}' {reason}"
    return None


def _why_too_large(array: NDArray[np.generic], dtype: DType) -> str | None:
    """Say which finite number becomes infinite: if any does, the largest."""
    largest = max(abs(float(array.max())), abs(float(array.min())))
    if not math.isfinite(largest):
        finite = array[np.isfinite(array)]
        largest = float(np.abs(finite).max(initial=0.0))
    with np.errstate(over="ignore"):  # what is too large becomes infinite
        rounded = np.float32(largest).astype(dtype.numpy)
    if np.isfinite(rounded.astype(np.float32)):
        return None
    return f"holds {largest:g}, {dtype} ends at {dtype.largest:g}"


def _why_rounded_away(number: NDArray[np.generic], dtype: DType) -> str | None:
    """Say which finite number changes by more than a rounding; it does not become infinite."""
    value = np.float32(number.reshape(())[()])
    if not np.isfinite(value):
        return None
    rounded = value.astype(dtype.numpy).astype(np.float32)
    if abs(rounded - value) <= MAX_SCALAR_ERROR * (abs(value) or 1):
        return None
    return f"holds {float(value):g}, which {dtype} rounds away"
