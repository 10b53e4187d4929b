"""Products of matrices in float64: those of many rows with one matrix are a single product."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun


def matmul(a: Any, b: Any) -> Any:
    """Return ``a @ b``; where ``b`` is one matrix, it is read once for all rows of ``a``.

    NumPy multiplies [..., M, K] with [K, N] matrix by matrix: for [1, 56, 56, 96] that is 56 products, each
    too small to be spread over cores, which nevertheless wait for each other.
    """
    if a.ndim < 3 or b.ndim != 2:
        return np.matmul(a, b)
    rows, depth = a.shape[:-1], a.shape[-1]
    return np.matmul(a.reshape(prod(rows), depth), b).reshape(*rows, b.shape[1])


class MatMul(OpRun):
    """Product of matrices, as ONNX's MatMul."""

    def _run(self, a: Any, b: Any) -> tuple[Any]:
        return (np.asarray(matmul(a, b), a.dtype),)
