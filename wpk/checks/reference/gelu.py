"""ONNX's Erf and Gelu; onnx's own call ``math.erf`` for one element after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from wpk.error_function import erf


class Erf(OpRun):
    """ONNX's Erf."""

    def _run(self, x: Any) -> tuple[Any]:
        return (np.asarray(erf(x), x.dtype),)


class Gelu(OpRun):
    """ONNX's Gelu: ``x / 2 (1 + erf(x / sqrt 2))``, or as its attribute asks by tanh."""

    def _run(self, x: Any, approximate: str) -> tuple[Any]:
        if approximate == "tanh":
            inner = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x))
        else:
            inner = erf(x * np.sqrt(0.5))
        inner += 1.0
        inner *= x
        inner *= 0.5
        return (np.asarray(inner, x.dtype),)
