"""Normalisations that onnx's own evaluator gets wrong or does not have."""

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun


class GroupNormalization(OpRun):
    """Channels in groups, each of mean 0 and variance 1, times scale plus bias; onnx 1.23 has but its body.

    Attributes as ONNX's GroupNormalization; before opset 21 scale and bias are those of groups.
    """

    def _run(self, x: Any, scale: Any, bias: Any, **attributes: Any) -> tuple[Any]:
        groups = attributes["num_groups"]
        rows = x.reshape(x.shape[0], groups, -1)
        mean, var = (each(rows, axis=2, keepdims=True) for each in (np.mean, np.var))
        y = ((rows - mean) / np.sqrt(var + attributes["epsilon"])).reshape(x.shape)
        scale, bias = (
            np.repeat(each, x.shape[1] // each.size).reshape(-1, *(1,) * (x.ndim - 2))
            for each in (scale, bias)
        )
        return (np.asarray(y * scale + bias, x.dtype),)


class LpNormalization(OpRun):
    """``x`` over its norm along an axis, 0 where that is 0; onnx 1.23's sums no magnitudes where p is 1."""

    def _run(self, x: Any, axis: int = -1, p: int = 2) -> tuple[Any]:
        norm = np.linalg.norm(x, p, axis, keepdims=True)
        return (np.asarray(np.divide(x, norm, out=np.zeros_like(x), where=norm != 0), x.dtype),)


class LRN(OpRun):
    """``x / (bias + alpha / size * sum of x^2 over neighbouring channels)^beta``.

    onnx 1.23's computes as many channels as there are images. Attributes as ONNX's LRN.
    """

    def _run(self, x: Any, **attributes: Any) -> tuple[Any]:
        size = attributes["size"]
        edges = [(0, 0)] * x.ndim
        edges[1] = ((size - 1) // 2, size // 2)
        padded = np.pad(x * x, edges)
        squares = sum(padded[:, i : i + x.shape[1]] for i in range(size))
        alpha, beta, bias = (float(attributes[name]) for name in ("alpha", "beta", "bias"))
        return (np.asarray(x / (bias + alpha / size * squares) ** beta, x.dtype),)
