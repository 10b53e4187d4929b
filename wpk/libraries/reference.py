"""What a problem's output must be: NumPy in float64 on random operands, and how far a result may lie.

    |y - ref| <= u_out |ref| + what the epilogue makes of 4 (u_mul + u sqrt(K)) (|x| * |w|)

u_mul is the rounding of a factor as the multiplier sees it, 0 where the factors lie in memory with
16 bits (their products are exact in fp32); the sum is fp32, u = 2^-24, with K terms, and on tensor
cores each partial sum of eight is cut, not rounded (`wpk.engine.error_bounds` has the sources).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType, Precision
from wpk.expression import evaluate
from wpk.problems import Convolution, Matmul, Tensor

Array = NDArray[Any]

_U = 2.0**-24
_SAFETY = 4.0
_TENSOR_CORE_STEP = 8
_SPECIAL_FUNCTIONS = 16.0
"""Units of an epilogue's own error: a few functions of 4 ulp each."""


@dataclass(frozen=True)
class Case:
    """Operands and the output that they give.

    Attributes:
        operands: Over their domains (1 where broadcast), in their types in memory.
        output: In float64, over its domain.
        allowed: The largest error of each element.
    """

    operands: tuple[Array, ...]
    output: Array
    allowed: Array


def random_case(problem: Convolution | Matmul, seed: int) -> Case:
    """Standard normal operands, and the exact output of a problem."""
    rng = np.random.default_rng(seed)
    storage = problem.precision.storage
    if isinstance(problem, Convolution):
        n, per_group = problem.n.value, (problem.k if problem.transposed else problem.c)
        filters = (problem.c if problem.transposed else problem.k, per_group // problem.groups)
        x = _draw(rng, (n, problem.c, problem.h, problem.w), problem.x.dtype)
        w = _draw(rng, (*filters, *problem.filter), storage)
        shape = (n, problem.k, problem.p, problem.q)
        exact, size = (_convolve(f(x), f(w), problem) for f in (_wide, _magnitude))
    else:
        b0, b1, m = problem.batch[0].value, problem.batch[1], problem.m.value
        x = _draw(rng, _stored((b0, b1, m, problem.k), problem.a), problem.a.dtype)
        inner = (problem.k, problem.n)
        w = _draw(
            rng, inner if problem.b_constant else _stored((b0, b1, *inner), problem.b), storage
        )
        shape = (b0, b1, m, problem.n)
        exact, size = (np.broadcast_to(f(x) @ f(w), shape) for f in (_wide, _magnitude))
    tensors = problem.epilogue.operands
    operands = [_draw(rng, _stored(shape, each), each.dtype) for each in tensors]
    output, allowed = _finish(problem, exact, _error(problem) * size, operands)
    return Case((x, w, *operands), output, allowed)


def worst_error(result: Array, case: Case) -> float:
    """The largest error of a result in units of what is allowed; infinite where it is not a number."""
    wide = np.asarray(result, np.float64)
    if not np.isfinite(wide).all():
        return float("inf")
    return float(np.max(np.abs(wide - case.output) / case.allowed, initial=0.0))


def _error(problem: Convolution | Matmul) -> float:
    """Error of a sum in units of the sum of its products' magnitudes."""
    terms = problem.reduction
    multiply = (
        problem.precision.multiply_roundoff if problem.precision.storage is DType.FP32 else 0.0
    )
    cut = 0.0 if problem.precision is Precision.FP32 else terms / _TENSOR_CORE_STEP * 2 * _U
    return _SAFETY * (multiply + _U * sqrt(terms)) + cut


def _finish(
    problem: Convolution | Matmul, exact: Array, error: Array, operands: Sequence[Array]
) -> tuple[Array, Array]:
    """The epilogue, and what it makes of an error either way."""
    expression, wide = problem.epilogue.expression, [_wide(each) for each in operands]
    output, up, down = (
        np.broadcast_to(np.asarray(evaluate(expression, acc, wide), np.float64), exact.shape)
        for acc in (exact, exact + error, exact - error)
    )
    moved = np.maximum(np.abs(up - output), np.abs(down - output))
    magnitude = np.abs(output) + np.abs(exact) + sum((np.abs(each) for each in wide), np.zeros(1))
    own = _SPECIAL_FUNCTIONS * _U * magnitude
    return output, moved + own + problem.y.dtype.unit_roundoff * np.abs(output) + 2.0**-24


def _draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    return rng.standard_normal(shape).astype(dtype.numpy)


def _stored(shape: tuple[int, ...], tensor: Tensor) -> tuple[int, ...]:
    """The shape with 1 where the tensor is broadcast."""
    return tuple(d if s else 1 for d, s in zip(shape, tensor.strides, strict=True))


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def _magnitude(array: Array) -> Array:
    return np.abs(array.astype(np.float64))


def _convolve(x: Array, w: Array, problem: Convolution) -> Array:
    """ONNX's Conv or ConvTranspose, one filter tap after the other."""
    n, groups = x.shape[0], problem.groups
    y = np.zeros((n, groups, problem.k // groups, problem.p, problem.q))
    grouped = x.reshape(n, groups, problem.c // groups, problem.h, problem.w)
    split = w.reshape(groups, -1, w.shape[1], *problem.filter)
    letters = "gckrs" if problem.transposed else "gkcrs"
    for r in range(problem.filter[0]):
        for s in range(problem.filter[1]):
            rows = _reach(problem, 0, r)
            columns = _reach(problem, 1, s)
            source, into = (..., rows[0], columns[0]), (..., rows[1], columns[1])
            tap = f"{letters.replace('rs', '')},ngchw->ngkhw"
            y[into] += np.einsum(tap, split[..., r, s], grouped[source], optimize=True)
    return y.reshape(n, problem.k, problem.p, problem.q)


def _reach(problem: Convolution, axis: int, tap: int) -> tuple[slice, slice]:
    """Which positions of x a tap reads along an axis, and which of y it adds to."""
    stride, first = problem.stride[axis], tap * problem.dilation[axis] - problem.pad[axis]
    of_x, of_y = (problem.h, problem.w)[axis], (problem.p, problem.q)[axis]
    few, many = (of_x, of_y) if problem.transposed else (of_y, of_x)
    start = max(0, -(first // stride))  # the first i with i stride + first >= 0
    stop = max(start, min(few, (many - 1 - first) // stride + 1))
    at = start * stride + first
    steps = slice(at, at + (stop - start - 1) * stride + 1 if stop > start else at, stride)
    return (slice(start, stop), steps) if problem.transposed else (steps, slice(start, stop))
