"""What squeeze and excitation gives in float64, and what a kernel's result may differ by.

An error goes from one part to the next: through an expression as far as that moves a result either way,
through a product by the magnitudes of its weights (`wpk.libraries.reference` has the rule for the sums).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import Precision
from wpk.expression import Expression, evaluate
from wpk.problems import Epilogue, Squeeze

Array = NDArray[Any]
_U, _SAFETY, _FUNCTIONS = 2.0**-24, 4.0, 16.0
"""Roundoff of fp32, that of independent roundings, and units of the error of a few functions."""


def excite(
    problem: Squeeze, x: Array, down: Array, up: Array, operands: Sequence[Sequence[Array]]
) -> tuple[Array, Array]:
    """Return the output, and the largest error of each element.

    Args:
        problem: What to compute.
        x: Over its domain and in float64, as the others.
        down: Rows of ``c`` elements.
        up: Rows of ``hidden_size`` elements.
        operands: Of ``hidden``, ``gates`` and ``scaled``; 1 where broadcast.
    """
    exact = x.mean(axis=2)
    error = _SAFETY * _U * np.sqrt(problem.pixels) * np.abs(x).mean(axis=2)
    row = _through(problem.means, (exact, error), [])
    hidden = _after(problem.hidden, _product(problem, row, down), operands[0])
    gate, error = _after(problem.gates, _product(problem, hidden, up), operands[1])
    shape = (*gate.shape, problem.places)
    gates = np.broadcast_to(gate[..., None], shape), np.broadcast_to(error[..., None], shape)
    y, error = _after(problem.scaled, gates, operands[2])
    return y, error + problem.y.dtype.unit_roundoff * np.abs(y) + _U


def _product(problem: Squeeze, row: tuple[Array, Array], weights: Array) -> tuple[Array, Array]:
    values, error = row
    sizes = np.abs(weights).T
    multiply = problem.precision.multiply_roundoff if problem.precision is Precision.TF32 else 0.0
    of_sum = _SAFETY * (multiply + _U * np.sqrt(weights.shape[1]))
    return values @ weights.T, error @ sizes + of_sum * (np.abs(values) @ sizes)


def _after(
    epilogue: Epilogue, result: tuple[Array, Array], operands: Sequence[Array]
) -> tuple[Array, Array]:
    return _through(epilogue.expression, result, operands)


def _through(
    expression: Expression, result: tuple[Array, Array], operands: Sequence[Array]
) -> tuple[Array, Array]:
    exact, error = result
    value, above, below = (
        np.broadcast_to(
            np.asarray(evaluate(expression, each, list(operands)), np.float64), exact.shape
        )
        for each in (exact, exact + error, exact - error)
    )
    moved = np.maximum(np.abs(above - value), np.abs(below - value))
    size = np.abs(value) + np.abs(exact) + sum((np.abs(each) for each in operands), np.zeros(1))
    return value, moved + _FUNCTIONS * _U * size
