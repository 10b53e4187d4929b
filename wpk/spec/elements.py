"""Numbers of element types in a spec."""

from wpk.dtypes import DType

_CODES = {
    DType.FP32: 1,
    DType.FP16: 2,
    DType.BF16: 3,
    DType.INT8: 4,
    DType.UINT8: 5,
    DType.INT32: 6,
    DType.INT64: 7,
    DType.BOOL: 8,
    DType.INT16: 9,
    DType.UINT16: 10,
    DType.UINT32: 11,
    DType.UINT64: 12,
    DType.FP64: 13,
    DType.FP8_E4M3: 14,
    DType.FP8_E5M2: 15,
}


def element_code(dtype: DType) -> int:
    """The number of an element type."""
    return _CODES[dtype]
