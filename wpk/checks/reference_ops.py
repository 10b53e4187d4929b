"""Reference operators that onnx's own evaluator gets wrong, cannot do, or takes long for."""

from itertools import product
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from wpk.checks import reference_old_softmax as old_softmax
from wpk.checks.reference_convolution import Conv
from wpk.checks.reference_gelu import Erf, Gelu
from wpk.checks.reference_pad import Pad
from wpk.checks.reference_pooling import AveragePool, GlobalMaxPool, MaxPool
from wpk.checks.reference_resize import Resize


class ConvTranspose(OpRun):
    """Transposed convolution with groups; onnx 1.23's fails for more than one group.

    Every input element is added, times each filter tap, to the place that the tap moves it to; the
    padding is cut off at the end. Attributes as ONNX's ConvTranspose.
    """

    op_domain = ""

    def _run(
        self,
        x: Any,
        weight: Any,
        bias: Any = None,
        *,
        auto_pad: str,
        dilations: Any,
        group: int,
        kernel_shape: Any,
        output_padding: Any,
        output_shape: Any,
        pads: Any,
        strides: Any,
    ) -> tuple[Any]:
        del kernel_shape  # the weight has it
        rank = x.ndim - 2
        stride, dilation = list(strides or [1] * rank), list(dilations or [1] * rank)
        extra = list(output_padding or [0] * rank)
        taps = weight.shape[2:]
        full = [
            (n - 1) * s + (f - 1) * d + 1 + e
            for n, s, f, d, e in zip(x.shape[2:], stride, taps, dilation, extra, strict=True)
        ]
        same = auto_pad in ("SAME_UPPER", "SAME_LOWER")
        wanted = list(output_shape or [])[-rank:]
        if same and not wanted:
            wanted = [n * s for n, s in zip(x.shape[2:], stride, strict=True)]
        if wanted:  # what no tap reaches is zero
            full = [max(n, w) for n, w in zip(full, wanted, strict=True)]
        begin, size = _crop(full, wanted, list(pads or [0] * 2 * rank), auto_pad)
        channels, per_group = x.shape[1] // group, weight.shape[1]
        y = np.zeros((x.shape[0], per_group * group, *full), x.dtype)
        for g, tap in product(range(group), np.ndindex(*taps)):
            part = x[:, g * channels : (g + 1) * channels]
            matrix = weight[(slice(g * channels, (g + 1) * channels), slice(None), *tap)]
            places = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilation, x.shape[2:], stride, strict=True)
            )
            outputs = slice(g * per_group, (g + 1) * per_group)
            y[(slice(None), outputs, *places)] += np.einsum("nc...,ck->nk...", part, matrix)
        kept = tuple(slice(b, b + n) for b, n in zip(begin, size, strict=True))
        y = y[(slice(None), slice(None), *kept)]
        return (y if bias is None else y + bias.reshape(bias.size, *[1] * rank),)


def _crop(
    full: list[int], wanted: list[int], pads: list[int], auto_pad: str
) -> tuple[list[int], list[int]]:
    """First index and size of what remains along each axis."""
    rank = len(full)
    if not wanted:
        begin, end = pads[:rank], pads[rank:]
        return begin, [n - b - e for n, b, e in zip(full, begin, end, strict=True)]
    totals = [max(0, n - w) for n, w in zip(full, wanted, strict=True)]
    halves = [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in totals]
    return halves, wanted


class BatchNormalization(OpRun):
    """``(x - mean) / sqrt(var + epsilon) * scale + bias``: inference, where the statistics are given.

    onnx's own trains before opset 14. Attributes as ONNX's BatchNormalization.
    """

    op_domain = ""

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

    op_domain = ""

    def _run(self, x: Any) -> tuple[Any]:
        return (np.asarray(x / (1.0 + np.abs(x)), x.dtype),)


class HardSwish(OpRun):
    """``x max(0, min(1, x / 6 + 1 / 2))``; onnx 1.23's has a sixth of fp32."""

    op_domain = ""

    def _run(self, x: Any) -> tuple[Any]:
        return (np.asarray(x * np.clip(x / 6 + 0.5, 0, 1), x.dtype),)


class LogSoftmax(OpRun):
    """``v - log(sum(exp(v)))`` along an axis; onnx 1.23's takes the logarithm of what may be 0."""

    op_domain = ""

    def _run(self, x: Any, axis: int) -> tuple[Any]:
        y = x - x.max(axis=axis, keepdims=True)
        y -= np.log(np.exp(y).sum(axis=axis, keepdims=True))
        return (y,)


class Squeeze(OpRun):
    """Squeeze drops axes of one element; onnx 1.23's drops them one by one, where negative ones count anew."""

    op_domain = ""

    def _run(self, x: Any, given: Any = None, axes: Any = None) -> tuple[Any]:
        places = axes if given is None else np.ravel(given)
        return (np.squeeze(x, None if places is None else tuple(int(axis) for axis in places)),)


class Unsqueeze(OpRun):
    """Unsqueeze adds axes of one element; onnx 1.23's adds them one by one, so that negative ones go astray."""

    op_domain = ""

    def _run(self, x: Any, given: Any = None, axes: Any = None) -> tuple[Any]:
        places = axes if given is None else np.ravel(given)
        return (np.expand_dims(x, tuple(int(axis) for axis in places)),)


_OPS: tuple[type[OpRun], ...] = (
    AveragePool,
    BatchNormalization,
    Conv,
    ConvTranspose,
    Erf,
    Gelu,
    GlobalMaxPool,
    HardSwish,
    MaxPool,
    Pad,
    Resize,
    Softsign,
    Squeeze,
    Unsqueeze,
)
_ALONG_ONE_AXIS = (LogSoftmax,)
_FLATTENING = (old_softmax.LogSoftmax, old_softmax.Softmax)


def reference_ops(opset: int) -> list[type[OpRun]]:
    """What every `onnx.reference.ReferenceEvaluator` is given as its ``new_ops``.

    Args:
        opset: Version of ONNX's own domain.
    """
    return [*_OPS, *(_ALONG_ONE_AXIS if opset >= 13 else _FLATTENING)]
