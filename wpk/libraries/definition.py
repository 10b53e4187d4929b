"""What a problem that libraries compute is, in NumPy and float64: the product, then the epilogue."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.expression import evaluate
from wpk.problems import Convolution, Matmul, Normalisation
from wpk.problems.normalisation import NormKind

Array = NDArray[Any]
Computable = Convolution | Matmul | Normalisation
"""Problems with a definition here; of normalisations, those with one input and no prologue."""


def define(problem: Computable, operands: Sequence[Array]) -> Array:
    """The exact output, in float64 and over its domain.

    Args:
        problem: What to compute.
        operands: Over their domains (1 where broadcast); constant factors in their logical shape.
    """
    wide = [each.astype(np.float64) for each in operands]
    match problem:
        case Convolution():
            acc, rest = convolve(wide[0], wide[1], problem), wide[2:]
        case Matmul():
            acc, rest = multiply(wide[0], wide[1], problem), wide[2:]
        case Normalisation():
            acc, rest = normalise(wide[0], problem), wide[1:]
    return finish(problem, acc, rest)


def finish(problem: Computable, acc: Array, operands: Sequence[Array]) -> Array:
    """The epilogue of an exact result."""
    result = evaluate(problem.epilogue.expression, acc, list(operands))
    return np.broadcast_to(np.asarray(result, np.float64), acc.shape)


def multiply(a: Array, b: Array, problem: Matmul) -> Array:
    """The product over the last two axes, over the output's domain."""
    shape = (problem.batch[0].value, problem.batch[1], problem.m.value, problem.n)
    return np.broadcast_to(a @ b, shape)


def normalise(x: Array, problem: Normalisation) -> Array:
    """The rows, with mean 0 where the kind asks for it, and with mean square 1."""
    centred = problem.kind is NormKind.LAYER
    d = x - x.mean(axis=-1, keepdims=True) if centred else x
    scaled: Array = d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + problem.epsilon)
    return scaled


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
