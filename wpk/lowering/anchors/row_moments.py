"""Moments of rows: where they lie beside the rows, and the problem of a product that gives them."""

from dataclasses import fields, replace

import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.lowering.anchors.base import LoweredProblem
from wpk.lowering.memory_map import MemoryMap
from wpk.lowering.refusal import RefusedError
from wpk.lowering.views import NotAViewError, View, contiguous_strides
from wpk.problems import Matmul, MomentsMatmul, NormKind, Tensor, numbers_of_group

_KINDS = {numbers_of_group(kind): kind for kind in (NormKind.RMS, NormKind.LAYER)}
"""By the numbers of a group."""


def moments_home(memory: MemoryMap, tensor: gs.Tensor, rows: View) -> View:
    """Return the memory to which moments of the rows of ``rows`` are written: a group and its numbers behind each row.

    Args:
        memory: Where values lie.
        tensor: The moments.
        rows: All of the tensor whose rows they are of, in memory.
    """
    groups, numbers = (int(size) for size in tensor.shape[-2:])
    shape = (*rows.shape[:-1], groups, numbers)
    return memory.home(tensor.name, DType.FP32, shape, rows.leading)


def beside_rows(moments: View, whole: View, rows: Tensor) -> Tensor:
    """Return moments as a problem sees them that sees their rows as ``rows``: both lie one behind the other.

    Args:
        moments: All of them, in memory.
        whole: All of the tensor whose rows they are of, in memory.
        rows: Its rows, over (b0, b1, m, columns).

    Raises:
        RefusedError: The problem sees something else than whole rows.
        NotAViewError: The rows do not lie one behind the other.
    """
    columns, width = whole.shape[-1], moments.shape[-2] * moments.shape[-1]
    if whole.strides != contiguous_strides(whole.shape) or whole.offset or whole.padding:
        raise NotAViewError(whole.source, whole.shape, whole.shape)
    *outer, one = rows.strides
    if one != 1 or any(stride % columns for stride in outer):
        raise RefusedError("moments of what are no whole rows")
    strides = (*(stride // columns * width for stride in outer), 1)
    return replace(
        moments.tensor(), strides=strides, alignment=moments.shape[-1] * DType.FP32.bytes
    )


def with_moments(lowered: LoweredProblem, moments: View, whole: View) -> LoweredProblem:
    """Return the problem of a product that stores moments of its rows, too.

    Args:
        lowered: The product.
        moments: Where they are stored.
        whole: Where the rows are.

    Raises:
        RefusedError: It is no product.
        NotAViewError: The rows do not lie one behind the other.
    """
    plain = lowered.problem
    if type(plain) is not Matmul or plain.n != whole.shape[-1]:
        raise RefusedError("moments of rows that no product makes")
    given = {field.name: getattr(plain, field.name) for field in fields(plain)}
    kind, tensor = _KINDS[moments.shape[-1]], beside_rows(moments, whole, plain.y)
    return replace(lowered, problem=MomentsMatmul(**given, kind=kind, moments=tensor))
