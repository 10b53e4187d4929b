"""Which operators may stand where in a fused function.

    inputs -> [views] -> [Cast] -> prologue -> anchor -> epilogue -> [Cast] -> [views] -> output

The *anchor* is the one node that decides the kernel. Prologue and epilogue are element-wise; only
an anchor that works on rows or reduces may have a prologue. A function without an anchor is one
element-wise graph.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import REDUCTIONS, element_type, is_op, rank
from wpk.operators import OperatorKind, of_kind

MATRIX = of_kind(OperatorKind.PRODUCT)
POOLS = of_kind(OperatorKind.POOL)
SOFTMAX = of_kind(OperatorKind.SOFTMAX)
ROWS = of_kind(OperatorKind.NORMALISATION)
ANCHORS = (*MATRIX, *POOLS, *SOFTMAX, *ROWS, *REDUCTIONS)
WITH_PROLOGUE = (*SOFTMAX, *ROWS, *REDUCTIONS, "GlobalAveragePool", "GlobalMaxPool")
SPATIAL = ("Conv", "ConvTranspose", *POOLS)
VIEWS = of_kind(OperatorKind.VIEW)
ELEMENTWISE = frozenset(of_kind(OperatorKind.ELEMENTWISE))

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
        and is_op(node, *ELEMENTWISE)
        and len(node.outputs) == 1
        and node.outputs[0].shape is not None
    )


def is_floating(tensor: gs.Tensor) -> bool:
    """Tell whether a tensor holds floating point; 16-bit types that NumPy lacks are ints here."""
    dtype = element_type(tensor)
    if not isinstance(dtype, np.dtype | type):
        return isinstance(dtype, int)
    return np.issubdtype(dtype, np.floating)


def is_widening(node: gs.Node) -> bool:
    """Whether ``node`` casts a 16-bit float to more: free for the reader, dear for the writer."""
    return is_op(node, "Cast") and _width(node.inputs[0]) == 2 and _width(node.outputs[0]) > 2


def _width(tensor: gs.Tensor) -> int:
    """Bytes of an element; 16-bit types that NumPy lacks are ints in graphsurgeon."""
    dtype = element_type(tensor)
    return 2 if isinstance(dtype, int) else int(getattr(dtype, "itemsize", 0))
