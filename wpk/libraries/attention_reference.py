"""What attention gives in float64, and what a kernel's result may differ by.

The rules are those of `wpk.checks.error_bounds`: products, their sums, the exponentials, the rounding
of the weights to what is multiplied, and the second product.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import Precision
from wpk.expression import evaluate
from wpk.libraries.definition import finish, for_each_head, in_place, in_windows, softmax
from wpk.problems import Attention

Array = NDArray[Any]
U = 2.0**-24
"""Unit roundoff of fp32."""

SPECIAL_FUNCTIONS = 16.0
"""Units of an epilogue's own error: a few functions of 4 ulp each."""


def attend(
    problem: Attention, q: Array, k: Array, v: Array, operands: Sequence[Array]
) -> tuple[Array, Array]:
    """Return the output, and the largest error of each element.

    Args:
        problem: What to compute.
        q: Over its domain and in float64, as the others.
        k: Likewise.
        v: Likewise.
        operands: Of the scores, then of the epilogue; 1 where broadcast.
    """
    k, v = (for_each_head(problem, each) for each in (k, v))
    q, k, v = (in_windows(problem, each) for each in (q, k, v))
    masks = operands[: len(problem.scores.operands)]
    narrow = problem.precision.storage.bytes == 2
    u = 0.0 if narrow else problem.precision.multiply_roundoff
    cut = 2 * U / 8 if problem.precision is not Precision.FP32 else 0.0
    products = 4 * (u + U * np.sqrt(problem.depth)) + cut * problem.depth
    error = products * (np.abs(q) @ np.abs(k).swapaxes(-1, -2))
    exact, expression = q @ k.swapaxes(-1, -2), problem.scores.expression
    scores, up, down = (
        evaluate(expression, each, masks) for each in (exact, exact + error, exact - error)
    )
    finite = np.where(np.isfinite(scores), scores, 0.0)
    with np.errstate(invalid="ignore"):
        moved = np.maximum(np.abs(up - scores), np.abs(down - scores))
        error = np.nan_to_num(moved) + 2 * U * np.abs(finite)
        largest = scores.max(-1, keepdims=True)
        p = softmax(scores)
        depth = np.where(np.isfinite(scores), np.abs(scores - largest), 0.0)
    if problem.empty_rows_are_zero:
        p = np.where(np.isnan(p), 0.0, p)
    error = np.where(p == 0, 0.0, error)  # no error of a score that is masked gives it weight
    relative = 2 * error.max(-1, keepdims=True) + 4 * U * (np.sqrt(problem.keys) + depth + 4)
    rounded = problem.precision.storage.unit_roundoff if narrow else u
    of_p = p * (relative + rounded) + (2.0**-25 if narrow else 2.0**-149)
    products = 4 * (u + U * np.sqrt(problem.keys)) + cut * problem.keys
    tolerance = of_p @ np.abs(v) + products * (p @ np.abs(v))
    exact, tolerance = (in_place(problem, each) for each in (p @ v, tolerance))
    reference, tolerance = _finished(problem, exact, tolerance, operands[len(masks) :])
    rounding = problem.y.dtype.unit_roundoff * np.abs(reference) + 2.0**-25
    return reference, np.nan_to_num(tolerance + rounding, nan=1.0)


def _finished(
    problem: Attention, exact: Array, error: Array, operands: Sequence[Array]
) -> tuple[Array, Array]:
    """The epilogue, what it makes of an error either way, and what it adds of its own."""
    if problem.epilogue is None:
        return exact, error
    shape = np.broadcast_shapes(exact.shape, *(each.shape for each in operands))
    exact, error = np.broadcast_to(exact, shape), np.broadcast_to(error, shape)
    result, up, down = (
        finish(problem.epilogue, each, operands) for each in (exact, exact + error, exact - error)
    )
    moved = np.maximum(np.abs(up - result), np.abs(down - result))
    magnitude = np.abs(result) + np.abs(exact) + sum(np.abs(each) for each in operands)
    return result, moved + SPECIAL_FUNCTIONS * U * magnitude
