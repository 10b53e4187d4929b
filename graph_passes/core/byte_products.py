"""Products of bytes: which nodes multiply numbers of 8 bits as they lie in memory.

A graph writes one as the product of a Cast, and of a constant whose numbers 8 bits hold, or of another Cast.
It is plain ONNX, and right in fp32 as far as fp32 holds the sums; a kernel that reads integers as they lie
adds them in int32, which is exact. Both factors are integers, or both of one type of floating point.
"""

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.dtypes import DType, from_numpy, holds_bytes, holds_float8
from wpk.graph_passes.core.query import (
    FLOAT8,
    element_type,
    given,
    is_op,
    made_by,
    producer,
    split_constant,
    values,
)

_PRODUCTS = ("Conv", "MatMul", "Gemm")
_MOST_SCALARS = 2


def multiplies_bytes(node: gs.Node) -> bool:
    """Tell whether both factors of ``node`` have 8 bits, the first one from memory."""
    if not is_op(node, *_PRODUCTS) or (first := cast_byte_type(node.inputs[0])) is None:
        return False
    if (second := cast_byte_type(node.inputs[1])) is not None:
        return are_multiplied(first, second)
    weights = values(node.inputs[1])
    return weights is not None and holds_factor(weights, first)


def are_multiplied(first: DType, second: DType) -> bool:
    """Tell whether bytes of these types can be factors of one product: with or without sign, or of one float type."""
    return first is second or (first.is_byte and second.is_byte)


def holds_factor(array: NDArray[Any], other: DType) -> bool:
    """Tell whether the constant factor of bytes of type ``other`` can lie in memory as bytes, too."""
    return holds_float8(array, other) if other.is_fp8 else holds_bytes(array)


def cast_byte_type(tensor: gs.Tensor) -> DType | None:
    """Return the type of the bytes that ``tensor`` holds as floating point; None where it holds something else."""
    cast = made_by(tensor, "Cast")
    return None if cast is None else byte_type(cast.inputs[0])


def byte_type(tensor: gs.Tensor) -> DType | None:
    """Return the type of a tensor of 8-bit integers or floating point; None for others."""
    dtype = element_type(tensor)
    if isinstance(dtype, int) and dtype in FLOAT8:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    known = None if dtype is None or isinstance(dtype, int) else from_numpy(np.dtype(dtype))
    return known if known is not None and (known.is_byte or known.is_fp8) else None


def uniform_origin(node: gs.Node) -> float | None:
    """Return the zero point of a quantisation; None where there are several, or it is computed."""
    if (zero := given(node, 2)) is None:
        return 0.0
    array = byte_numbers(zero)
    if array is None or array.size == 0 or (array != array.reshape(-1)[0]).any():
        return None
    return float(array.reshape(-1)[0])


def byte_numbers(tensor: gs.Tensor) -> NDArray[np.float32] | None:
    """Return the numbers of a constant of bytes, also of floating point; None of what is computed."""
    if not isinstance(tensor, gs.Constant):
        return None
    return np.asarray(tensor.values).astype(np.float32)


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
