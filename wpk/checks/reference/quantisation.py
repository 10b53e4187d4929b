"""Quantisations in float64.

onnx's evaluator has no forms of QuantizeLinear before opset 19, and computes DynamicQuantizeLinear in fp32.
"""

from typing import Any

import ml_dtypes
import numpy as np
from onnx import helper
from onnx.reference.op_run import OpRun

from wpk.dtypes import is_fp8

BYTE_LIMIT = 255


class QuantizeLinear(OpRun):
    """``saturate(round(x / scale) + zero)``. Attributes and inputs as ONNX's; 8-bit floating point rounds by itself."""

    def _run(self, x: Any, scale: Any, zero: Any = None, **attributes: Any) -> tuple[Any]:
        dtype = np.dtype(np.uint8)
        if attributes.get("output_dtype"):
            dtype = helper.tensor_dtype_to_np_dtype(attributes["output_dtype"])
        if zero is not None:
            dtype = zero.dtype
        quotient = x / _spread(scale, x, attributes)
        if is_fp8(dtype):
            return (_in_eight_bits(quotient, dtype, saturates=attributes.get("saturate", 1)),)
        if dtype.kind not in "iu":
            raise NotImplementedError(f"QuantizeLinear to {dtype}")
        limits = np.iinfo(dtype)
        y = np.rint(quotient)
        if zero is not None:
            y += _spread(zero, x, attributes).astype(np.float64)
        return (np.clip(y, limits.min, limits.max).astype(dtype),)


def _in_eight_bits(number: Any, dtype: Any, *, saturates: bool) -> Any:
    """Round; the zero point of these types is 0. NaN stays what it is."""
    if saturates:
        largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
        number = np.clip(number, -largest, largest)
    return np.asarray(number).astype(dtype)


class DequantizeLinear(OpRun):
    """``(x - zero) * scale``. Attributes and inputs as ONNX's."""

    def _run(self, x: Any, scale: Any, zero: Any = None, **attributes: Any) -> tuple[Any]:
        distance = x.astype(np.float64)
        if zero is not None:
            distance = distance - _spread(zero, x, attributes).astype(np.float64)
        return (distance * _spread(scale, x, attributes),)


class DynamicQuantizeLinear(OpRun):
    """A byte for each number between the least and the largest, or 0; 0 is a byte, too.

    As ONNX Runtime has it: a scale of 1 where the tensor is zero everywhere, for which ONNX's function has none.
    """

    def _run(self, x: Any) -> tuple[Any, ...]:
        scale, zero = dynamic_parameters(np.min(x, initial=0.0), np.max(x, initial=0.0))
        y = np.clip(np.rint(x / scale) + zero, 0, BYTE_LIMIT)
        return y.astype(np.uint8), np.asarray(scale), np.asarray(zero, np.uint8)


def dynamic_parameters(low: Any, high: Any) -> tuple[Any, Any]:
    """Return the scale of bytes that reach from one number to another, and the byte that is 0."""
    scale = (high - low) / BYTE_LIMIT if high > low else 1.0
    return scale, np.clip(np.rint(-low / scale), 0, BYTE_LIMIT)


def _spread(parameter: Any, x: Any, attributes: dict[str, Any]) -> Any:
    """A scale or zero point in a shape that meets the tensor's."""
    axis, block = attributes.get("axis", 1), attributes.get("block_size", 0)
    if block:
        return np.take(np.repeat(parameter, block, axis), range(x.shape[axis]), axis)
    if parameter.size == 1:
        return parameter.reshape(())
    shape = [1] * x.ndim
    shape[axis] = parameter.size
    return parameter.reshape(shape)
