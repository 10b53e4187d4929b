"""What a problem that libraries compute is, in NumPy and float64."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.expression import Expression, evaluate
from wpk.problems import (
    Attention,
    Convolution,
    Elementwise,
    Epilogue,
    Matmul,
    Normalisation,
    NormedMatmul,
    NormKind,
    Problem,
    ReduceKind,
    Reduction,
)

Array = NDArray[Any]

_REDUCE: dict[ReduceKind, Callable[..., Any]] = {
    ReduceKind.SUM: np.sum,
    ReduceKind.MEAN: np.mean,
    ReduceKind.MAX: np.max,
    ReduceKind.MIN: np.min,
    ReduceKind.PROD: np.prod,
}


def define(problem: Problem, operands: Sequence[Array]) -> Array:
    """Return the exact output, in float64 and over its domain.

    Args:
        problem: What to compute.
        operands: Over their domains (1 where broadcast); constant factors in their logical shape.

    Raises:
        KeyError: No library computes problems of this kind.
    """
    return _DEFINITIONS[type(problem)](problem, [each.astype(np.float64) for each in operands])


def finish(epilogue: Epilogue, acc: Array, operands: Sequence[Array]) -> Array:
    """Return the epilogue of an exact result."""
    result = evaluate(epilogue.expression, acc, list(operands))
    return np.broadcast_to(np.asarray(result, np.float64), acc.shape)


def multiply(a: Array, b: Array, problem: Matmul) -> Array:
    """Return the product over the last two axes, over the output's domain."""
    shape = (problem.batch[0].value, problem.batch[1], problem.m.value, problem.n)
    return np.broadcast_to(a @ b, shape)


def before(expression: Expression, inputs: Sequence[Array], shape: Sequence[int]) -> Array:
    """An expression over inputs: what a reduction is of, or the whole of element-wise work."""
    result = evaluate(expression, None, list(inputs))
    return np.broadcast_to(np.asarray(result, np.float64), shape)


def reduce(values: Array, problem: Reduction) -> Array:
    """Return the values without the inner axes."""
    inner = tuple(range(len(problem.outer), values.ndim))
    return np.asarray(_REDUCE[problem.kind](values, axis=inner))


def attend(problem: Attention, operands: Sequence[Array]) -> Array:
    """Return the values weighted by the softmax of the scores, over the output's domain."""
    q, k, v, *others = operands
    masks = len(problem.scores.operands)
    q, k, v = (in_windows(problem, each) for each in (q, k, v))
    k, v = (for_each_head(problem, each) for each in (k, v))
    p = softmax(scores(problem, q, k, others[:masks]))
    if problem.empty_rows_are_zero:
        p = np.where(np.isnan(p), 0.0, p)
    shape = (problem.batch[0].value, problem.batch[1], problem.queries, problem.width)
    result = in_place(problem, np.broadcast_to(p @ v, shape))
    return finish(problem.ending, result, others[masks:])


def in_windows(problem: Attention, lying: Array) -> Array:
    """Return the matrices of windows, of what lies row by row as images do."""
    if problem.windows is None:
        return lying
    return _moved(problem.windows.places(), lying)


def in_place(problem: Attention, windows: Array) -> Array:
    """Return the rows of windows as images have them; undoes `in_windows`."""
    if problem.windows is None:
        return windows
    return _moved(np.argsort(problem.windows.places()), windows)


def _moved(places: NDArray[np.int64], matrices: Array) -> Array:
    """The rows of (matrix, head, row, column), of which each image has so many, in another order."""
    outer, heads, rows, columns = matrices.shape
    lying = matrices.swapaxes(1, 2).reshape(-1, len(places), heads, columns)[:, places]
    return lying.reshape(outer, rows, heads, columns).swapaxes(1, 2)


def for_each_head(problem: Attention, keys: Array) -> Array:
    """Return keys or values with the heads that queries have, where several share one."""
    if problem.sharing is None or keys.shape[1] == 1:
        return keys
    return np.repeat(keys, problem.sharing, axis=1)


def scores(problem: Attention, q: Array, k: Array, operands: Sequence[Array]) -> Array:
    """Return what the softmax of an attention is of."""
    products = q @ np.swapaxes(k, -1, -2)
    return np.asarray(evaluate(problem.scores.expression, products, list(operands)))


def softmax(x: Array) -> Array:
    """Return the softmax along the last axis."""
    with np.errstate(invalid="ignore"):  # rows of nothing but -inf are not a number
        powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def normalise(x: Array, problem: Normalisation | NormedMatmul) -> Array:
    """The rows' softmax or its logarithm, or the rows with mean square 1, and mean 0 if asked for."""
    if problem.kind is NormKind.SOFTMAX:
        return softmax(x)
    if problem.kind is NormKind.LOG_SOFTMAX:
        below = x - x.max(axis=-1, keepdims=True)
        return np.asarray(below - np.log(np.exp(below).sum(axis=-1, keepdims=True)))
    return np.asarray(_centred(x, problem) * row_scales(x, problem))


def row_scales(x: Array, problem: Normalisation | NormedMatmul) -> Array:
    """What a layer norm or an RMS norm multiplies each row by, with an axis of one element."""
    squares = _centred(x, problem) ** 2
    return np.asarray(1 / np.sqrt(squares.mean(axis=-1, keepdims=True) + problem.epsilon))


def _centred(x: Array, problem: Normalisation | NormedMatmul) -> Array:
    return x - x.mean(axis=-1, keepdims=True) if problem.kind is NormKind.LAYER else x


def convolve(x: Array, w: Array, problem: Convolution) -> Array:
    """ONNX's Conv or ConvTranspose, one filter tap after the other."""
    n, groups = x.shape[0], problem.groups
    y = np.zeros((n, groups, problem.k // groups, problem.p, problem.q))
    grouped = x.reshape(n, groups, problem.c // groups, problem.h, problem.w)
    split = w.reshape(groups, -1, w.shape[1], *problem.filter)
    letters = "gck" if problem.transposed else "gkc"
    for r in range(problem.filter[0]):
        for s in range(problem.filter[1]):
            rows, columns = _reach(problem, 0, r), _reach(problem, 1, s)
            source, into = (..., rows[0], columns[0]), (..., rows[1], columns[1])
            y[into] += np.einsum(
                f"{letters},ngchw->ngkhw", split[..., r, s], grouped[source], optimize=True
            )
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


def _convolution(problem: Convolution, operands: Sequence[Array]) -> Array:
    x, weight, *rest = operands
    return finish(problem.epilogue, convolve(x, weight, problem), rest)


def _matmul(problem: Matmul, operands: Sequence[Array]) -> Array:
    a, b, *rest = operands
    return finish(problem.epilogue, multiply(a, b, problem), rest)


def _normalisation(problem: Normalisation, operands: Sequence[Array]) -> Array:
    """Of those with one input and no prologue."""
    x, *rest = operands
    return finish(problem.epilogue, normalise(x, problem), rest)


def _reduction(problem: Reduction, operands: Sequence[Array]) -> Array:
    count, shape = len(problem.inputs), (*problem.outer, *problem.inner)
    values = before(problem.prologue, operands[:count], shape)
    return finish(problem.epilogue, reduce(values, problem), operands[count:])


def _elementwise(problem: Elementwise, operands: Sequence[Array]) -> Array:
    return before(problem.expression, operands, problem.shape)


_DEFINITIONS: dict[type[Problem], Callable[[Any, Sequence[Array]], Array]] = {
    Convolution: _convolution,
    Matmul: _matmul,
    Attention: attend,
    Normalisation: _normalisation,
    Reduction: _reduction,
    Elementwise: _elementwise,
}
"""By kind: those that some library computes."""
