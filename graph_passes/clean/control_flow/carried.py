"""Which operators of bodies (of functions, of loops) can become kernels, by themselves or through passes."""

from functools import cache
from typing import Any

import onnx

from wpk.operators import OPERATORS, OperatorKind

FOLDED = ("Constant", "ConstantOfShape", "If", "Range")
"""Operators of bodies that have no kernel and are computed before there are kernels."""

LOOPS = ("Loop", "Scan")
"""Operators that are unrolled."""

_REWRITTEN = (
    *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"),
    *("Einsum", "Resize", "BatchNormalization"),
)
"""Operators that other passes replace, or that have kernels, and whose row says neither."""


@cache
def schema_of(op: str, opset: int) -> Any:
    """The schema of an operator, whose functions onnx's types do not know; None where there is none."""
    try:
        return onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return None


def is_function(schema: Any) -> bool:
    """Whether ONNX defines the operator by others."""
    return bool(schema.has_function or schema.has_context_dependent_function)


def is_carried(op: str, opset: int) -> bool:
    """Whether a standard operator has a kernel, or a pass that replaces it or computes it once."""
    row, schema = OPERATORS.get(op), schema_of(op, opset)
    if op in (*FOLDED, *LOOPS, *_REWRITTEN):
        return True
    has_kernel = row is not None and row.kind is not OperatorKind.OTHER
    return has_kernel or (schema is not None and is_function(schema))
