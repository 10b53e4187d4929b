"""Reference operators that onnx's own evaluator gets wrong, cannot do, or takes long for."""

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from wpk.checks.reference.box_selection import NonMaxSuppression
from wpk.checks.reference.convolution import CausalConvWithState, Conv, ConvTranspose
from wpk.checks.reference.deformed import DeformConv
from wpk.checks.reference.gelu import Erf, Gelu
from wpk.checks.reference.grid_sample import AffineGrid, GridSample
from wpk.checks.reference.indexed import (
    GatherElements,
    OneHot,
    ScatterElements,
    ScatterND,
)
from wpk.checks.reference.linear import MatMul
from wpk.checks.reference.linear_attention import LinearAttention
from wpk.checks.reference.loop import Loop, Scan
from wpk.checks.reference.norms import LRN, GroupNormalization, LpNormalization
from wpk.checks.reference.pad import Pad
from wpk.checks.reference.pooling import AveragePool, GlobalMaxPool, MaxPool
from wpk.checks.reference.quantisation import (
    DequantizeLinear,
    DynamicQuantizeLinear,
    QuantizeLinear,
)
from wpk.checks.reference.recurrent import GRU, LSTM, RNN
from wpk.checks.reference.resize import Resize
from wpk.checks.reference.roi_align import RoiAlign
from wpk.checks.reference.softmax import LogSoftmax, Softmax


class BatchNormalization(OpRun):
    """``(x - mean) / sqrt(var + epsilon) * scale + bias``: inference, where the statistics are given.

    onnx's own trains before opset 14. Attributes as ONNX's BatchNormalization.
    """

    def _run(
        self, x: Any, scale: Any, bias: Any, mean: Any, var: Any, **attributes: Any
    ) -> tuple[Any]:
        if attributes.get("training_mode"):
            raise NotImplementedError("BatchNormalization in training mode")
        behind = (1,) * (x.ndim - 2)
        scale, bias, mean, var = (
            each.reshape(each.size, *behind) for each in (scale, bias, mean, var)
        )
        y = (x - mean) / np.sqrt(var + attributes["epsilon"]) * scale + bias
        return (np.asarray(y, x.dtype),)


class Softsign(OpRun):
    """``x / (1 + |x|)``; onnx 1.23's fails for a scalar."""

    def _run(self, x: Any) -> tuple[Any]:
        return (np.asarray(x / (1.0 + np.abs(x)), x.dtype),)


class HardSwish(OpRun):
    """``x max(0, min(1, x / 6 + 1 / 2))``; onnx 1.23's has a sixth of fp32."""

    def _run(self, x: Any) -> tuple[Any]:
        return (np.asarray(x * np.clip(x / 6 + 0.5, 0, 1), x.dtype),)


class Squeeze(OpRun):
    """Squeeze drops axes of one element; onnx 1.23's drops them one by one, where negative ones count anew."""

    def _run(self, x: Any, given: Any = None, axes: Any = None) -> tuple[Any]:
        places = axes if given is None else np.ravel(given)
        return (np.squeeze(x, None if places is None else tuple(int(axis) for axis in places)),)


class Unsqueeze(OpRun):
    """Unsqueeze adds axes of one element; onnx 1.23's adds them one by one, so that negative ones go astray."""

    def _run(self, x: Any, given: Any = None, axes: Any = None) -> tuple[Any]:
        places = axes if given is None else np.ravel(given)
        return (np.expand_dims(x, tuple(int(axis) for axis in places)),)


REFERENCE_OPS: tuple[type[OpRun], ...] = (
    AveragePool,
    BatchNormalization,
    CausalConvWithState,
    Conv,
    ConvTranspose,
    DeformConv,
    DequantizeLinear,
    DynamicQuantizeLinear,
    Erf,
    GatherElements,
    GRU,
    Gelu,
    GlobalMaxPool,
    AffineGrid,
    GridSample,
    GroupNormalization,
    HardSwish,
    LRN,
    LSTM,
    LinearAttention,
    LogSoftmax,
    Loop,
    LpNormalization,
    MatMul,
    MaxPool,
    NonMaxSuppression,
    OneHot,
    Pad,
    QuantizeLinear,
    RNN,
    Resize,
    RoiAlign,
    Scan,
    ScatterElements,
    ScatterND,
    Softmax,
    Softsign,
    Squeeze,
    Unsqueeze,
)
"""What every `onnx.reference.ReferenceEvaluator` is given as its ``new_ops``."""
