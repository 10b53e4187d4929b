"""What softmax, reductions and element-wise work give in float64, and what a result may differ by.

Everything is fp32, u = 2^-24: sums of K terms err by 4 u sqrt(K) of their terms' magnitudes,
functions by a few units of their results.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.libraries import random_case
from wpk.libraries.definition import before, finish, reduce
from wpk.libraries.memory import places
from wpk.libraries.reference import RandomCase
from wpk.problems import Elementwise, Normalisation, Reduction
from wpk.problems.reduction import ReduceKind

Array = NDArray[Any]
_U = 2.0**-24
_SAFETY = 4.0
_SPECIAL_FUNCTIONS = 16.0
"""Units of the error of a few functions of 4 ulp each."""

_SUBNORMAL = 2.0**-24
"""The smallest number in fp16: what a small result may lose."""


def reduction_case(problem: Normalisation | Reduction | Elementwise, seed: int) -> RandomCase:
    """Standard normal operands, and the exact output; of softmax, the package's own case."""
    if isinstance(problem, Normalisation):
        return random_case(problem, seed)
    rng = np.random.default_rng(seed)
    *inputs, _ = places(problem, None)
    memory = tuple(
        rng.standard_normal(each.shape).astype(each.tensor.dtype.numpy) for each in inputs
    )
    wide = [each.astype(np.float64) for each in memory]
    match problem:
        case Reduction():
            output, allowed = _reduction(problem, wide)
        case Elementwise():
            output = before(problem.expression, wide, problem.shape)
            allowed = _SPECIAL_FUNCTIONS * _U * _size(wide, output)
    rounding = problem.y.dtype.unit_roundoff * np.abs(output) + _SUBNORMAL
    return RandomCase(memory, output, allowed + rounding)


def _reduction(problem: Reduction, wide: Sequence[Array]) -> tuple[Array, Array]:
    count = len(problem.inputs)
    inputs, operands = wide[:count], wide[count:]
    values = before(problem.prologue, inputs, (*problem.outer, *problem.inner))
    inner = tuple(range(len(problem.outer), values.ndim))
    size, exact = _size(inputs, values), reduce(values, problem)
    match problem.kind:
        case ReduceKind.SUM | ReduceKind.MEAN:
            share = problem.reduction if problem.kind is ReduceKind.MEAN else 1
            spread = _SAFETY * sqrt(problem.reduction) + _SPECIAL_FUNCTIONS
            error = spread * _U * size.sum(axis=inner) / share
        case ReduceKind.PROD:
            error = (problem.reduction + _SPECIAL_FUNCTIONS) * _U * np.abs(exact)
        case ReduceKind.MAX | ReduceKind.MIN:
            error = _SPECIAL_FUNCTIONS * _U * size.max(axis=inner)
    return _finish(problem, exact, error, operands)


def _finish(
    problem: Reduction, exact: Array, error: Array, operands: Sequence[Array]
) -> tuple[Array, Array]:
    """The epilogue, and what it makes of an error either way."""
    output, up, down = (
        finish(problem.epilogue, acc, operands) for acc in (exact, exact + error, exact - error)
    )
    moved = np.maximum(np.abs(up - output), np.abs(down - output))
    return output, moved + _SPECIAL_FUNCTIONS * _U * (_size(operands, output) + np.abs(exact))


def _size(arrays: Sequence[Array], result: Array) -> Array:
    return sum((np.abs(each) for each in arrays), np.abs(result))
