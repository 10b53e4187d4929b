"""What the units of a GPU reach at a precision, or in a type of numbers."""

from wpk.dtypes import DType, Precision
from wpk.targets import Target

SPLIT_PRODUCTS = 3
"""Products of tf32 that replace one of strict fp32 (``wpk/kernels/mma/split_fp32.cuh``)."""


def tensor_peak(precision: Precision, target: Target) -> float | None:
    """Return the operations per second of the tensor cores; None where there are none for the precision.

    In fp32 an operand is split into two tf32 numbers: a third of that peak.
    """
    if precision is not Precision.FP32:
        return target.tensor_peak(precision)
    single = target.tensor_peak(Precision.TF32)
    return None if single is None else single / SPLIT_PRODUCTS


def ordinary_peak(numbers: DType, target: Target) -> float:
    """Return the operations per second of the ordinary cores in numbers of a type; integers count as fp32."""
    return target.peak_double if numbers is DType.FP64 else target.peak_ordinary
