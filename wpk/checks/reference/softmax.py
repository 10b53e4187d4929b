"""Softmax and LogSoftmax of every opset.

Before opset 13 all axes from ``axis`` on are one row, which onnx's own does not know; and its LogSoftmax
takes the logarithm of what may be 0.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from onnx.reference.op_run import OpRun

from wpk.blocks import Block, on_cores, parts_of_rows
from wpk.reused_memory import empty


def softmax_axes(node: onnx.NodeProto, rank: int, opset: int) -> tuple[int, ...]:
    """The axes of a row: attribute ``axis``, whose default was 1 once, and before opset 13 all behind it."""
    default = 1 if opset < 13 else -1
    first = next((int(a.i) for a in node.attribute if a.name == "axis"), default) % rank
    return tuple(range(first, rank)) if opset < 13 else (first,)


class Softmax(OpRun):
    """ONNX's Softmax."""

    def _run(self, x: Any, axis: int) -> tuple[Any]:
        del axis  # where it is not given it is the default of the newest opset
        axes = softmax_axes(self.onnx_node, x.ndim, self.run_params["opsets"][""])
        y: Any = empty(x.shape, x.dtype)

        def fill(at: Block) -> None:
            some = np.subtract(x[at], x[at].max(axis=axes, keepdims=True), out=y[at])
            np.exp(some, out=some)
            some /= some.sum(axis=axes, keepdims=True)

        first = axes[0]
        on_cores(parts_of_rows(x.shape[:first], prod(x.shape[first:])), fill)
        return (y,)


class LogSoftmax(OpRun):
    """ONNX's LogSoftmax: ``v - log(sum(exp(v)))``."""

    def _run(self, x: Any, axis: int) -> tuple[Any]:
        del axis
        axes = softmax_axes(self.onnx_node, x.ndim, self.run_params["opsets"][""])
        y = x - x.max(axis=axes, keepdims=True)
        y -= np.log(np.exp(y).sum(axis=axes, keepdims=True))
        return (y,)
