"""Reference operators that onnx's own evaluator gets wrong, cannot do, or takes long for."""

from itertools import product
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from wpk.checks.reference_convolution import Conv
from wpk.checks.reference_gelu import Erf, Gelu
from wpk.checks.reference_pooling import AveragePool, MaxPool


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
        auto_pad: str = "NOTSET",
        dilations: Any = None,
        group: int = 1,
        kernel_shape: Any = None,
        output_padding: Any = None,
        output_shape: Any = None,
        pads: Any = None,
        strides: Any = None,
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
        return (y if bias is None else y + bias.reshape(1, -1, *[1] * rank),)


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


REFERENCE_OPS: tuple[type[OpRun], ...] = (
    AveragePool,
    Conv,
    ConvTranspose,
    Erf,
    Gelu,
    MaxPool,
)
"""Passed to every `onnx.reference.ReferenceEvaluator`."""
