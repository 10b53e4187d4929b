"""Which operators may stand where in a fused function.

    inputs -> [views] -> [Cast] -> prologue -> anchor -> epilogue -> [Cast] -> [views] -> output

The *anchor* is the one node that decides the kernel. Prologue and epilogue are element-wise; only
an anchor that works on rows or reduces may have a prologue. A function without an anchor is one
element-wise graph.
"""

from enum import Enum, auto
from functools import lru_cache

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.byte_products import byte_type
from wpk.graph_passes.core.query import (
    FLOAT8,
    ONNX_DOMAINS,
    REDUCTIONS,
    element_type,
    integers,
    is_op,
    rank,
    split_constant,
)
from wpk.operators import ELEMENTWISE, EXACT_IN_FP32, OPERATORS, Integers, OperatorKind, of_kind

MATRIX = of_kind(OperatorKind.PRODUCT)
POOLS = of_kind(OperatorKind.POOL)
SOFTMAX = of_kind(OperatorKind.SOFTMAX)
ROWS = of_kind(OperatorKind.NORMALISATION)
ANCHORS = (*MATRIX, *POOLS, *SOFTMAX, *ROWS, *REDUCTIONS)
WITH_PROLOGUE = (*SOFTMAX, *ROWS, *REDUCTIONS, "GlobalAveragePool", "GlobalMaxPool")
SPATIAL = ("Conv", "ConvTranspose", *POOLS)
VIEWS = of_kind(OperatorKind.VIEW)
RMS_NORM = "RMSNormalization"

# Operands of one element-wise graph: the most that its kernel takes as tensors.
MAX_INPUTS = 8


def is_anchor(node: gs.Node | None) -> bool:
    """Tell whether ``node`` can be the anchor of a function."""
    return node is not None and is_op(node, *ANCHORS) and why_no_anchor(node) is None


def why_no_anchor(node: gs.Node) -> str | None:
    """Say why a node of an anchor's kind cannot be one."""
    if sum(not tensor.is_empty() for tensor in node.outputs) != 1:
        return f"{node.op} gives {len(node.outputs)} outputs, a fused operator has one"
    if rank(node.outputs[0]) is None:
        return f"the rank of '{node.outputs[0].name}' is unknown"
    return None


def is_elementwise(node: gs.Node | None) -> bool:
    """Tell whether ``node`` is element-wise with one output of a known shape."""
    return (
        node is not None
        and node.op in ELEMENTWISE
        and node.domain in ONNX_DOMAINS
        and len(node.outputs) == 1
        and node.outputs[0].shape is not None
    )


class Numbers(Enum):
    """What a node computes in. Nodes are computed together with their like only."""

    FP32 = auto()
    """Or fewer bits, widened as they are read."""
    FP64 = auto()
    INTEGERS = auto()
    """Of 64 bits."""


def numbers_of(node: gs.Node) -> Numbers:
    """Return what a node computes in; a Cast from or to fp64 is a part of what is computed in fp64."""
    if any(_is_double(tensor) for tensor in (*node.inputs, *node.outputs)):
        return Numbers.FP64
    return Numbers.INTEGERS if computes_in_integers(node) else Numbers.FP32


def _is_double(tensor: gs.Tensor) -> bool:
    return _is_a(element_type(tensor), np.float64)


@lru_cache(maxsize=256, typed=True)  # NumPy looks through its types each time
def _is_a(dtype: object, kind: type[np.generic]) -> bool:
    """Whether a type is of a kind of NumPy's; types that NumPy lacks are ints in graphsurgeon, and of none."""
    return isinstance(dtype, np.dtype | type) and np.issubdtype(dtype, kind)


def computes_in_integers(node: gs.Node | None) -> bool:
    """Tell whether the numbers of an element-wise node are integers that fp32 does not hold.

    Such nodes are computed together, and not with others. What a comparison with one small constant
    says of a large integer, its rounding to fp32 says as well.
    """
    if node is None or not is_elementwise(node) or is_op(node, "Cast", "Identity", "Dropout"):
        return False
    if not any(_is_integer(tensor) for tensor in (*node.inputs, *node.outputs)):
        return False
    if any(not tensor.is_empty() and is_floating(tensor) for tensor in node.inputs):
        return False
    sides = split_constant(node) if OPERATORS[node.op].integers is Integers.COMPARE else None
    values = integers(sides[1]) if sides is not None else None
    return values is None or len(values) != 1 or abs(values[0]) >= EXACT_IN_FP32


def _is_integer(tensor: gs.Tensor) -> bool:
    return _is_a(element_type(tensor), np.integer)


def is_floating(tensor: gs.Tensor) -> bool:
    """Tell whether a tensor holds floating point that is computed with; types that NumPy lacks are ints here."""
    dtype = element_type(tensor)
    if isinstance(dtype, int):
        return dtype not in FLOAT8
    return _is_a(dtype, np.floating)


def is_widening(node: gs.Node) -> bool:
    """Whether ``node`` casts bytes or a 16-bit float to more: free for the reader, dear for the writer."""
    if not is_op(node, "Cast"):
        return False
    if byte_type(node.inputs[0]) is not None:
        return is_floating(node.outputs[0])
    return _width(node.inputs[0]) == 2 and _width(node.outputs[0]) > 2


def _width(tensor: gs.Tensor) -> int:
    """Bytes of an element; types that NumPy lacks are ints in graphsurgeon."""
    dtype = element_type(tensor)
    if isinstance(dtype, int):
        return 1 if dtype in FLOAT8 else 2
    return int(getattr(dtype, "itemsize", 0))
