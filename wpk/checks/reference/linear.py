"""Products of matrices in float64: those of many rows with one matrix are a single product, others lie where they are computed."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from wpk.blocks import Block, on_cores, parts_of_rows
from wpk.reused_memory import empty


def matmul(a: Any, b: Any) -> Any:
    """Return ``a @ b``; where ``b`` is one matrix, it is read once for all rows of ``a``.

    NumPy multiplies [..., M, K] with [K, N] matrix by matrix: for [1, 56, 56, 96] that is 56 products, each
    too small to be spread over cores, which nevertheless wait for each other.
    """
    if a.ndim < 3 or b.ndim < 2:
        return np.matmul(a, b)
    if b.ndim > 2:
        return _each(a, b)
    rows, depth = a.shape[:-1], a.shape[-1]
    return np.matmul(a.reshape(prod(rows), depth), b).reshape(*rows, b.shape[1])


def _each(a: Any, b: Any) -> Any:
    """Matrix by matrix, or some rows of one, on all cores."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(each, (*lead, *each.shape[-2:])) for each in (a, b))
    y: Any = empty((*lead, a.shape[-2], b.shape[-1]), np.result_type(a, b))

    def multiply(at: Block) -> None:
        np.matmul(a[at], b[at[:-1]], out=y[at])

    on_cores(parts_of_rows(y.shape[:-1], max(a.shape[-1], b.shape[-1])), multiply)
    return y


class MatMul(OpRun):
    """Product of matrices, as ONNX's MatMul."""

    def _run(self, a: Any, b: Any) -> tuple[Any]:
        return (np.asarray(matmul(a, b), a.dtype),)
