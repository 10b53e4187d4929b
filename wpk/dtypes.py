"""Element types in memory, and the precisions that arithmetic may use."""

from enum import StrEnum

import ml_dtypes
import numpy as np


class DType(StrEnum):
    """Element type of a tensor in memory. The value is the name printed everywhere."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    INT8 = "int8"
    UINT8 = "uint8"
    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype that holds it (bf16 through ``ml_dtypes``)."""
        return _NUMPY[self]

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return int(self.numpy.itemsize)

    @property
    def is_float(self) -> bool:
        """Whether arithmetic on it is floating point."""
        return self in (DType.FP32, DType.FP16, DType.BF16)

    @property
    def c_name(self) -> str:
        """The type's name in the device headers (``wpk/kernels/scalar.cuh``)."""
        return _C_NAMES[self]

    @property
    def unit_roundoff(self) -> float:
        """Half the distance from 1 to the next number; 0 for integers."""
        return _UNIT_ROUNDOFF.get(self, 0.0)

    @property
    def largest(self) -> float:
        """The largest finite number of a floating point type."""
        return float(ml_dtypes.finfo(self.numpy).max)  # type: ignore[no-untyped-call]


_NUMPY: dict[DType, np.dtype] = {
    DType.FP32: np.dtype(np.float32),
    DType.FP16: np.dtype(np.float16),
    DType.BF16: np.dtype(ml_dtypes.bfloat16),
    DType.INT8: np.dtype(np.int8),
    DType.UINT8: np.dtype(np.uint8),
    DType.INT32: np.dtype(np.int32),
    DType.INT64: np.dtype(np.int64),
    DType.BOOL: np.dtype(np.bool_),
}
_C_NAMES: dict[DType, str] = {
    DType.FP32: "float",
    DType.FP16: "wpk::Half",
    DType.BF16: "wpk::Bfloat16",
    DType.INT8: "wpk::int8",
    DType.UINT8: "wpk::uint8",
    DType.INT32: "wpk::int32",
    DType.INT64: "wpk::int64",
    DType.BOOL: "bool",
}
_UNIT_ROUNDOFF: dict[DType, float] = {
    DType.FP32: 2.0**-24,
    DType.FP16: 2.0**-11,
    DType.BF16: 2.0**-8,
}


def from_numpy(dtype: np.dtype) -> DType | None:
    """The element type of a NumPy dtype, or None where wpk has none (float64, strings, complex)."""
    return next((d for d, n in _NUMPY.items() if n == dtype), None)


class Precision(StrEnum):
    """What the multiplications of matrix-like problems may use; accumulation is always fp32.

    ``tf32`` is no tensor type: tensors stay fp32 and products round their operands to tf32.
    """

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"

    @property
    def storage(self) -> DType:
        """The type that floating point tensors have in memory at this precision."""
        return DType.FP32 if self is Precision.TF32 else DType(self.value)

    @property
    def multiply_roundoff(self) -> float:
        """Unit roundoff of an operand as the multiplier sees it."""
        return 2.0**-11 if self is Precision.TF32 else self.storage.unit_roundoff
