"""Element types by TensorRT's names of them; its numbers differ between versions."""

from wpk.dtypes import DType

ELEMENT_TYPES = {
    "FLOAT": DType.FP32,
    "HALF": DType.FP16,
    "BF16": DType.BF16,
    "INT8": DType.INT8,
    "UINT8": DType.UINT8,
    "INT32": DType.INT32,
    "INT64": DType.INT64,
    "BOOL": DType.BOOL,
}
"""Those that wpk has, too."""


def element_type_name(dtype: DType) -> str:
    """TensorRT's name of an element type."""
    return next(name for name, each in ELEMENT_TYPES.items() if each is dtype)
