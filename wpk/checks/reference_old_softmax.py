"""Softmax and LogSoftmax before opset 13, where all axes from ``axis`` on are one row; onnx's own only knows later ones."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from onnx.reference.op_run import OpRun


def first_of_row(node: onnx.NodeProto, rank: int) -> int:
    """The first axis of a row: attribute ``axis``, whose default was 1 then."""
    return next((int(a.i) for a in node.attribute if a.name == "axis"), 1) % rank


class Softmax(OpRun):
    """ONNX's Softmax of opset 1 and 11."""

    op_domain = ""

    def _run(self, x: Any, axis: int) -> tuple[Any]:
        del axis  # where it is not given it is the default of the newest opset
        y = np.exp(_centred(x, first_of_row(self.onnx_node, x.ndim)))
        y /= y.sum(axis=1, keepdims=True)
        return (y.reshape(x.shape),)


class LogSoftmax(OpRun):
    """ONNX's LogSoftmax of opset 1 and 11."""

    op_domain = ""

    def _run(self, x: Any, axis: int) -> tuple[Any]:
        del axis
        y = _centred(x, first_of_row(self.onnx_node, x.ndim))
        y -= np.log(np.exp(y).sum(axis=1, keepdims=True))
        return (y.reshape(x.shape),)


def _centred(x: Any, first: int) -> Any:
    """Rows whose largest element is 0."""
    rows = x.reshape(prod(x.shape[:first]), prod(x.shape[first:]))
    return rows - rows.max(axis=1, keepdims=True)
