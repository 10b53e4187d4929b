"""What a tensor core multiplies: the C++ type that names it, and the operands that it takes as they lie."""

from wpk.dtypes import DType, Precision
from wpk.schedules.unit import Type

MULTIPLY_TYPES = {
    Precision.FP32: "wpk::SplitFp32",
    Precision.FP16: "wpk::Half",
    Precision.BF16: "wpk::Bfloat16",
    Precision.TF32: "wpk::Tf32",
}
"""The C++ type that names the multiplication of floating point."""


def multiply_type(precision: Precision, a: DType, b: DType) -> Type:
    """Return the C++ type that names the multiplication of operands that lie in memory so."""
    if precision.is_quantised:
        return Type(f"wpk::Bytes<{a.c_name}, {b.c_name}>")
    return Type(MULTIPLY_TYPES[precision])


def multiplied_as(dtype: DType, precision: Precision) -> bool:
    """Whether operands of this type are multiplied as they lie in memory: bytes with or without sign."""
    return dtype.is_byte if precision is Precision.INT8 else dtype is precision.storage
