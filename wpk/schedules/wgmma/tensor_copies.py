"""Operands that TMA copies to shared memory for warpgroups: boxes of 128 bytes, and what can be copied."""

from collections.abc import Iterable, Sequence

from wpk.dtypes import DType, Precision
from wpk.problems import Convolution, Matmul
from wpk.targets import Target

SWIZZLE = 128
"""Bytes of the swizzle of boxes, and of their rows."""

PRODUCT_BYTES = 32
"""Of a row along the reduction in one product of a box, of all types."""

ALIGNMENT = 16
"""Bytes: of addresses and strides that TMA takes."""

_CAPABILITY = (9, 0)  # wgmma is an instruction of sm_90a alone


def box_depth(precision: Precision) -> int:
    """Return the elements of the reduction in a box."""
    return SWIZZLE // precision.storage.bytes


def why_no_warpgroups(precision: Precision, target: Target) -> str | None:
    """Say why warpgroups cannot multiply on the target; None if they can."""
    if precision.is_fp8:
        return f"products of {precision.value}: those of warpgroups add them in fewer bits than fp32 has"
    if precision is Precision.FP64:
        return "products of fp64: wgmma has none"
    if target.capability != _CAPABILITY:
        return f"{target.name} has no products of warpgroups (wgmma; sm_90a has)"
    return None


def why_not_stored(problem: Convolution | Matmul) -> str | None:
    """Say why sums are not stored in the type of the output; None if they are."""
    dtype = problem.y.dtype
    if dtype.is_float or dtype.is_fp8 or dtype.is_byte:
        return None
    return f"the output is {dtype.value}; products are stored as floating point, or as 8 bits"


def map_strides(strides: Iterable[int], element_bytes: int) -> tuple[int, ...]:
    """Return the strides of a tensor map, in bytes.

    An axis of one element has none (0): any that a tensor map may have will do there.
    """
    return tuple(stride * element_bytes or ALIGNMENT for stride in strides)


def why_not_copied(
    name: str, dtype: DType, stored: DType, alignment: int, strides: Sequence[int]
) -> str | None:
    """Say why TMA cannot copy an operand; None if it can.

    Args:
        name: Of the operand.
        dtype: Its type in memory.
        stored: The type that is multiplied; bytes are, with or without sign.
        alignment: Bytes that its address is a multiple of.
        strides: Elements between neighbours, along the reduction first, 0 where broadcast.
    """
    if dtype is not stored and not (dtype.is_byte and stored.is_byte):
        return f"{name} is {dtype.value}; tensor copies bring {stored.value} as it lies"
    if strides[0] != 1:
        return f"{name} has a stride of {strides[0]} along the reduction; tensor copies need 1"
    steps = [stride * dtype.bytes for stride in strides[1:] if stride * dtype.bytes % ALIGNMENT]
    if steps:
        return f"{name} has a stride of {min(steps)} bytes; tensor copies need multiples of 16"
    if alignment < ALIGNMENT:
        return f"{name} is aligned to {alignment} bytes; tensor copies need {ALIGNMENT}"
    return None
