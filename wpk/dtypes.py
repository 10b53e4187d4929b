"""Element types in memory, and the precisions that arithmetic may use."""

from enum import StrEnum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray


class DType(StrEnum):
    """Element type of a tensor in memory. The value is the name printed everywhere."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    BOOL = "bool"
    FP64 = "fp64"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype that holds it (bf16 through ``ml_dtypes``)."""
        return _ROWS[self].numpy

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return int(self.numpy.itemsize)

    @property
    def is_float(self) -> bool:
        """Whether arithmetic on it is floating point; numbers of 8 bits are stored, and computed with in another type."""
        return self in (DType.FP32, DType.FP16, DType.BF16, DType.FP64)

    @property
    def is_fp8(self) -> bool:
        """Whether it is floating point of 8 bits, which quantised tensors have: FLOAT8E4M3FN or FLOAT8E5M2 of ONNX."""
        return self in (DType.FP8_E4M3, DType.FP8_E5M2)

    @property
    def multiplies(self) -> bool:
        """Whether it can be an operand of products: a float is rounded to their type, which holds bytes exactly."""
        return self.is_float or self.is_fp8 or self.is_byte

    @property
    def is_byte(self) -> bool:
        """Whether it is an integer of 8 bits."""
        return self in (DType.INT8, DType.UINT8)

    @property
    def is_integer(self) -> bool:
        """Whether arithmetic on it is that of integers; a truth value has none."""
        return not self.is_float and not self.is_fp8 and self is not DType.BOOL

    @property
    def c_name(self) -> str:
        """The type's name in the device headers (``wpk/kernels/numbers/scalar.cuh``)."""
        return _ROWS[self].c_name

    @property
    def unit_roundoff(self) -> float:
        """Half the distance from 1 to the next number; 0 for integers."""
        return _ROWS[self].unit_roundoff

    @property
    def largest(self) -> float:
        """The largest finite number of a floating point type."""
        return float(ml_dtypes.finfo(self.numpy).max)  # type: ignore[no-untyped-call]


class _Row(NamedTuple):
    """An element type in NumPy, in the device headers, and its unit roundoff."""

    numpy: np.dtype
    c_name: str
    unit_roundoff: float = 0.0


_ROWS: dict[DType, _Row] = {
    DType.FP32: _Row(np.dtype(np.float32), "float", 2.0**-24),
    DType.FP16: _Row(np.dtype(np.float16), "wpk::Half", 2.0**-11),
    DType.BF16: _Row(np.dtype(ml_dtypes.bfloat16), "wpk::Bfloat16", 2.0**-8),
    DType.INT8: _Row(np.dtype(np.int8), "wpk::int8"),
    DType.UINT8: _Row(np.dtype(np.uint8), "wpk::uint8"),
    DType.INT16: _Row(np.dtype(np.int16), "wpk::int16"),
    DType.UINT16: _Row(np.dtype(np.uint16), "wpk::uint16"),
    DType.INT32: _Row(np.dtype(np.int32), "wpk::int32"),
    DType.UINT32: _Row(np.dtype(np.uint32), "wpk::uint32"),
    DType.INT64: _Row(np.dtype(np.int64), "wpk::int64"),
    DType.UINT64: _Row(np.dtype(np.uint64), "wpk::uint64"),
    DType.BOOL: _Row(np.dtype(np.bool_), "bool"),
    DType.FP64: _Row(np.dtype(np.float64), "double", 2.0**-53),
    DType.FP8_E4M3: _Row(np.dtype(ml_dtypes.float8_e4m3fn), "wpk::Float8E4m3", 2.0**-4),
    DType.FP8_E5M2: _Row(np.dtype(ml_dtypes.float8_e5m2), "wpk::Float8E5m2", 2.0**-3),
}


def from_numpy(dtype: np.dtype) -> DType | None:
    """The element type of a NumPy dtype, or None where wpk has none (strings, complex numbers)."""
    return next((kind for kind, row in _ROWS.items() if row.numpy == dtype), None)


def is_float(dtype: np.dtype) -> bool:
    """Whether arithmetic in a NumPy dtype is floating point; that of 8 bits is stored only, see `is_fp8`.

    `ml_dtypes` calls E5M2 floating point, and neither E4M3 nor bf16.
    """
    return dtype.kind == "f" and dtype.itemsize > 1


def is_fp8(dtype: np.dtype) -> bool:
    """Whether a NumPy dtype is floating point of 8 bits, see `DType.is_fp8`."""
    known = from_numpy(dtype)
    return known is not None and known.is_fp8


MOST_BYTE_PRODUCTS = (2**31 - 1) // 255**2
"""Products of bytes whose sum int32 holds, whatever the bytes and their signs are."""


def holds_bytes(array: NDArray[Any]) -> bool:
    """Tell whether all numbers of an array are integers that int8 holds."""
    first = array[..., :1]  # soon no, of most weights
    if not array.size or not (first == np.rint(first)).all():
        return False
    within = array.min() >= -128 and array.max() <= 127
    return bool(within and (array == np.rint(array)).all())


def holds_float8(array: NDArray[Any], dtype: DType) -> bool:
    """Tell whether a type of 8-bit floating point holds all numbers of an array, as they are."""
    first = array[..., :1]  # as above

    def is_held(numbers: NDArray[Any]) -> bool:
        with np.errstate(over="ignore"):
            return bool((numbers.astype(dtype.numpy).astype(numbers.dtype) == numbers).all())

    return array.size > 0 and is_held(first) and is_held(array)


class Precision(StrEnum):
    """What the multiplications of matrix-like problems use; accumulation is in fp32, but for bytes and fp64.

    ``tf32`` is no tensor type: tensors stay fp32 and products round their operands to tf32. ``int8`` says
    that both operands are bytes, with or without sign, as a quantised model has them; their sums are
    int32, and exact. ``fp8_e4m3`` and ``fp8_e5m2`` say that both are floating point of 8 bits; fp16 holds
    each of them, and the units of fp16 multiply them. ``fp64`` says that tensors are fp64, and so are
    products and sums. A person asks for one of `ASKED`, a model for others.
    """

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    INT8 = "int8"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"
    FP64 = "fp64"

    @property
    def is_fp8(self) -> bool:
        """Whether both operands are floating point of 8 bits."""
        return self in (Precision.FP8_E4M3, Precision.FP8_E5M2)

    @property
    def is_quantised(self) -> bool:
        """Whether both operands have 8 bits in memory, as a quantised model has them."""
        return self is Precision.INT8 or self.is_fp8

    @property
    def unit(self) -> "Precision":
        """The precision whose units multiply."""
        return Precision.FP16 if self.is_fp8 else self

    @property
    def storage(self) -> DType:
        """The type that factors have in memory at this precision; of bytes, that of constants."""
        return DType.FP32 if self is Precision.TF32 else DType(self.value)

    @property
    def multiply_roundoff(self) -> float:
        """Unit roundoff of an operand as the multiplier sees it; 8 bits are multiplied as they lie in memory."""
        if self.is_fp8:
            return 0.0
        return 2.0**-11 if self is Precision.TF32 else self.storage.unit_roundoff


ASKED = (Precision.FP32, Precision.TF32, Precision.FP16, Precision.BF16)
"""The precisions that a person can ask for, in which floating point is multiplied."""
