"""Problems of attention, and what their results may differ by from float64."""

from typing import Any

import numpy as np

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, Scalar, apply, evaluate
from wpk.extent import Extent
from wpk.problems import Attention, Epilogue, Tensor

U = 2.0**-24


def heads_inside(dtype: DType, batch: int, rows: int, heads: int, size: int) -> Tensor:
    """Heads of a projection: (batch, row, head, element) in memory, as (batch, head, row, element)."""
    strides = (0 if batch == 1 else rows * heads * size, 0 if heads == 1 else size, heads * size, 1)
    alignment = next(a for a in (16, 8, 4, 2) if heads * size * dtype.bytes % a == 0)
    return Tensor(dtype, strides, 0, min(alignment, 16 if size * dtype.bytes % 16 == 0 else 2))


def attention(
    queries: int,
    keys: int,
    depth: int,
    *,
    precision: Precision = Precision.FP16,
    batch: tuple[int, int] = (2, 3),
    width: int | None = None,
    mask: tuple[int, ...] | None = None,
    scale: float = 1.0,
    zero: bool = False,
) -> Attention:
    """A problem; ``mask`` gives the strides of an fp32 tensor that is added to the scores."""
    dtype, d = precision.storage, depth if width is None else width
    scores: Expression = Acc() if scale == 1.0 else apply("Mul", Acc(), Scalar(scale))
    operands: tuple[Tensor, ...] = ()
    if mask is not None:
        scores = apply("Add", scores, Operand(0))
        operands = (Tensor(DType.FP32, mask, 0, 16 if keys % 4 == 0 else 4),)
    return Attention(
        precision=precision,
        batch=(Extent(batch[0]), batch[1]),
        queries=queries,
        keys=keys,
        depth=depth,
        width=d,
        q=heads_inside(dtype, batch[0], queries, batch[1], depth),
        k=heads_inside(dtype, batch[0], keys, batch[1], depth),
        v=heads_inside(dtype, batch[0], keys, batch[1], d),
        scores=Epilogue(scores, operands),
        empty_rows_are_zero=zero,
        y=heads_inside(dtype, batch[0], queries, batch[1], d),
    )


def expected(problem: Attention, q: Any, k: Any, v: Any, wide: Any) -> tuple[Any, Any]:
    """The result in float64, and what rounding explains (the rules of wpk/checks/error_bounds.py)."""
    narrow = problem.precision.storage.bytes == 2
    u = 0.0 if narrow else problem.precision.multiply_roundoff
    cut = 2 * U / 8 if problem.precision is not Precision.FP32 else 0.0
    products = 4 * (u + U * np.sqrt(problem.depth)) + cut * problem.depth
    error = products * (np.abs(q) @ np.abs(k).swapaxes(-1, -2))
    scores = evaluate(problem.scores.expression, q @ k.swapaxes(-1, -2), wide)
    scaled = evaluate(problem.scores.expression, error, [np.zeros_like(w) for w in wide])
    finite = np.where(np.isfinite(scores), scores, 0.0)
    with np.errstate(invalid="ignore"):
        error = np.abs(scaled) + 2 * U * np.abs(finite)
        largest = scores.max(-1, keepdims=True)
        exponentials = np.exp(scores - largest)
        p = exponentials / exponentials.sum(-1, keepdims=True)
        depth = np.where(np.isfinite(scores), np.abs(scores - largest), 0.0)
    if problem.empty_rows_are_zero:
        p = np.where(np.isnan(p), 0.0, p)
    relative = 2 * error.max(-1, keepdims=True) + 4 * U * (np.sqrt(problem.keys) + depth + 4)
    rounded = problem.precision.storage.unit_roundoff if narrow else u
    of_p = p * (relative + rounded) + (2.0**-25 if narrow else 2.0**-149)
    products = 4 * (u + U * np.sqrt(problem.keys)) + cut * problem.keys
    tolerance = of_p @ np.abs(v) + products * (p @ np.abs(v))
    reference = p @ v
    rounding = problem.y.dtype.unit_roundoff * np.abs(reference) + 2.0**-25
    return reference, np.nan_to_num(tolerance + rounding, nan=1.0)
