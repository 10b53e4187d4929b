"""Products of bytes: which nodes multiply 8-bit integers, so that their sums are integers and exact.

A graph writes one as the product of a Cast, and of a constant whose numbers are integers of 8 bits, or of
another Cast. It is plain ONNX, and right in fp32 as far as fp32 holds the sums; a kernel that reads the
bytes as they lie adds them in int32.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType, from_numpy, holds_bytes
from wpk.graph_passes.core.query import is_op, made_by, producer, split_constant, values

_PRODUCTS = ("Conv", "MatMul", "Gemm")
_MOST_SCALARS = 2


def multiplies_bytes(node: gs.Node) -> bool:
    """Tell whether both factors of ``node`` are integers of 8 bits, the first one from memory."""
    if not is_op(node, *_PRODUCTS) or not is_byte_cast(node.inputs[0]):
        return False
    if is_byte_cast(node.inputs[1]):
        return True
    weights = values(node.inputs[1])
    return weights is not None and holds_bytes(weights)


def is_byte_cast(tensor: gs.Tensor) -> bool:
    """Tell whether ``tensor`` holds bytes as floating point."""
    cast = made_by(tensor, "Cast")
    return cast is not None and byte_type(cast.inputs[0]) is not None


def byte_type(tensor: gs.Tensor) -> DType | None:
    """Return the type of a tensor of 8-bit integers; None for others."""
    dtype = tensor.dtype
    known = None if dtype is None or isinstance(dtype, int) else from_numpy(np.dtype(dtype))
    return known if known is not None and known.is_byte else None


def restoration(tensor: gs.Tensor) -> list[gs.Node]:
    """Return what restores a quantised tensor: a cast of bytes, and the one or two scalars behind it.

    q -> Cast -> [Sub a zero point] -> Mul by a scale. None where ``tensor`` is made in another way.
    """
    links: list[gs.Node] = []
    while (node := producer(tensor)) is not None and len(links) <= _MOST_SCALARS:
        if links and is_op(node, "Cast"):
            return [node, *links] if byte_type(node.inputs[0]) is not None else []
        sides = split_constant(node) if is_op(node, "Add", "Sub", "Mul") else None
        if sides is None or sides[1].values.size != 1:
            return []
        links.insert(0, node)
        tensor = sides[0]
    return []
