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
from wpk.libraries.definition import for_each_head, softmax
from wpk.problems import Attention

Array = NDArray[Any]
U = 2.0**-24
"""Unit roundoff of fp32."""


def attend(
    problem: Attention, q: Array, k: Array, v: Array, operands: Sequence[Array]
) -> tuple[Array, Array]:
    """Return the output, and the largest error of each element.

    Args:
        problem: What to compute.
        q: Over its domain and in float64, as the others.
        k: Likewise.
        v: Likewise.
        operands: Of the scores; 1 where broadcast.
    """
    k, v = (for_each_head(problem, each) for each in (k, v))
    narrow = problem.precision.storage.bytes == 2
    u = 0.0 if narrow else problem.precision.multiply_roundoff
    cut = 2 * U / 8 if problem.precision is not Precision.FP32 else 0.0
    products = 4 * (u + U * np.sqrt(problem.depth)) + cut * problem.depth
    error = products * (np.abs(q) @ np.abs(k).swapaxes(-1, -2))
    exact, expression = q @ k.swapaxes(-1, -2), problem.scores.expression
    scores, up, down = (
        evaluate(expression, each, operands) for each in (exact, exact + error, exact - error)
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
    reference = p @ v
    rounding = problem.y.dtype.unit_roundoff * np.abs(reference) + 2.0**-25
    return reference, np.nan_to_num(tolerance + rounding, nan=1.0)
