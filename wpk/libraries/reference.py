"""What a problem's output must be: NumPy in float64 on random operands, and how far a result may lie.

    |y - ref| <= u_out |ref| + what the epilogue makes of 4 (u_mul + u sqrt(K)) (|x| * |w|)

u_mul is the rounding of a factor as the multiplier sees it, 0 where the factors lie in memory with
16 bits (their products are exact in fp32); the sum is fp32, u = 2^-24, with K terms, and on tensor
cores each partial sum of eight is cut, not rounded (`wpk.checks.error_bounds` has the sources). Of fp64
u is 2^-52: the reference rounds as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType, Precision
from wpk.expression import Operand, evaluate
from wpk.libraries.attention_reference import SPECIAL_FUNCTIONS, attend
from wpk.libraries.definition import convolve, finish, multiply, normalise, row_scales
from wpk.libraries.squeeze_reference import excite
from wpk.problems import (
    Attention,
    ClampedConvolution,
    Convolution,
    Epilogue,
    FeedForward,
    Matmul,
    MomentsMatmul,
    Normalisation,
    NormedMatmul,
    NormKind,
    Problem,
    Squeeze,
    Tensor,
    moments_group,
    whole_runs,
)

Array = NDArray[Any]
_U, _U_DOUBLE = 2.0**-24, 2.0**-52
_SAFETY = 4.0
_TENSOR_CORE_STEP = 8


@dataclass(frozen=True)
class RandomCase:
    """Operands and the output that they give.

    Attributes:
        operands: Over their domains (1 where broadcast), in their types in memory.
        output: In float64, over its domain.
        allowed: The largest error of each element.
        beside: Of each further output the same two.
    """

    operands: tuple[Array, ...]
    output: Array
    allowed: Array
    beside: tuple[tuple[Array, Array], ...] = ()


def why_unknown(problem: Problem) -> str | None:
    """Say why a problem has no reference here, in words; None if it has one."""
    if type(problem) in _CASES:
        return None
    return f"there is no reference for problems of the kind {type(problem).__name__}"


def random_case(problem: Problem, seed: int) -> RandomCase:
    """Normal operands, and the exact output of a problem.

    Factors are standard normal, the second one of a product scaled: sums are of the order of one,
    as in networks, whatever their length.

    Raises:
        KeyError: `why_unknown` has a reason.
    """
    return _CASES[type(problem)](problem, np.random.default_rng(seed))


def worst_error(result: Array, case: RandomCase) -> float:
    """The largest error of a result in units of what is allowed; infinite where it is not a number."""
    wide = np.asarray(result, np.float64)
    if not np.isfinite(wide).all():
        return float("inf")
    return float(np.max(np.abs(wide - case.output) / case.allowed, initial=0.0))


def _unit(problem: Problem) -> float:
    """The roundoff of what is computed beside products, and of their sums."""
    return _U_DOUBLE if problem.numbers is DType.FP64 else _U


def _error(precision: Precision, terms: int, factors: Sequence[Tensor]) -> float:
    """Error of a sum in units of the sum of its products' magnitudes, whose factors lie in memory so."""
    if precision is Precision.INT8:
        return _U  # the sum is exact, and rounded to fp32 once
    if precision is Precision.FP64:
        return _SAFETY * _U_DOUBLE * (1 + sqrt(terms))
    narrow = precision.storage is not DType.FP32
    exact = narrow and all(each.dtype is precision.storage for each in factors)
    multiply = 0.0 if exact else precision.multiply_roundoff
    cut = 0.0 if precision is Precision.FP32 else terms / _TENSOR_CORE_STEP * 2 * _U
    return _SAFETY * (multiply + _U * sqrt(terms)) + cut


def _convolution(problem: Convolution, rng: np.random.Generator) -> RandomCase:
    """Factors, limits where there are any, and the product's error through the epilogue."""
    x = _draw(rng, (problem.n.value, problem.c, problem.h, problem.w), problem.x.dtype)
    w = _draw(rng, problem.constant_shape, problem.precision.storage, problem.reduction)
    limits = _limits(problem, rng)
    kept = _wide(x)
    for limit, choose in zip(limits, (np.maximum, np.minimum), strict=False):
        kept = choose(kept, _wide(limit))
    exact, size = (convolve(part(kept), part(w), problem) for part in (_wide, _magnitude))
    operands = _operands(problem.epilogue, exact.shape, rng)
    error = _error(problem.precision, problem.reduction, [problem.x]) * size
    output, allowed = _finish(problem, exact, error, operands)
    return RandomCase((x, w, *operands, *limits), output, allowed)


def _limits(problem: Convolution, rng: np.random.Generator) -> list[Array]:
    """Of each channel, where the input is kept between limits; upper ones not below lower ones."""
    if not isinstance(problem, ClampedConvolution):
        return []
    shape = (problem.n.value, problem.c, problem.h, problem.w)
    drawn = [_draw(rng, _stored(shape, each), each.dtype) for each in problem.limits]
    return [-np.abs(drawn[0]), *(np.abs(each) for each in drawn[1:])]


def _matmul(problem: Matmul, rng: np.random.Generator) -> RandomCase:
    """Factors, and the product's error through the epilogue."""
    outer = (problem.batch[0].value, problem.batch[1])
    m, n, k = problem.m.value, problem.n, problem.k
    a = _draw(rng, _stored((*outer, m, k), problem.a), problem.a.dtype)
    if problem.b_constant:
        b = _draw(rng, (k, n), problem.precision.storage, k)
    else:
        b = _draw(rng, _stored((*outer, k, n), problem.b), problem.b.dtype, k)
    exact, size = (multiply(part(a), part(b), problem) for part in (_wide, _magnitude))
    factors = [problem.a] if problem.b_constant else [problem.a, problem.b]
    error = _error(problem.precision, problem.reduction, factors) * size
    operands = _operands(problem.epilogue, exact.shape, rng)
    output, allowed = _finish(problem, exact, error, operands)
    return RandomCase((a, b, *operands), output, allowed)


def _moments_matmul(problem: MomentsMatmul, rng: np.random.Generator) -> RandomCase:
    """A product, and moments of its rows, which are as far off as the rows are, and as sums in fp32 are."""
    case = _matmul(problem, rng)
    centred = problem.kind is NormKind.LAYER
    groups = case.output.reshape(*case.output.shape[:-1], -1, moments_group(problem.n))
    error = case.allowed.reshape(groups.shape)
    of_mean = error.mean(axis=-1, keepdims=True) + _SAFETY * _U * np.abs(groups).mean(
        -1, keepdims=True
    )
    error = error + of_mean if centred else error
    difference = np.abs(groups - groups.mean(axis=-1, keepdims=True)) if centred else np.abs(groups)
    of_square = (2 * difference * error + error**2 + _SAFETY * _U * difference**2).mean(
        axis=-1, keepdims=True
    )
    allowed = np.concatenate([of_mean, of_square], axis=-1) if centred else of_square
    moments = _moments(case.output, problem.kind)
    return replace(case, beside=((moments, allowed.reshape(moments.shape)),))


def _normed_matmul(problem: NormedMatmul, rng: np.random.Generator) -> RandomCase:
    """Factors and sums of the constant one's columns; errors of products, means and scales through the epilogue."""
    outer = (problem.batch[0].value, problem.batch[1])
    a = _draw(rng, _stored((*outer, problem.m.value, problem.k), problem.a), problem.a.dtype)
    b = _draw(rng, (problem.k, problem.n), problem.precision.storage, problem.k)
    x, w = _wide(a), _wide(b)
    exact = multiply(normalise(x, problem), w, problem)
    of_rows = multiply(_norm_error(problem, x, np.zeros(1)), np.abs(w), problem)
    summed = multiply(np.abs(x) * row_scales(x, problem), np.abs(w), problem)
    error = of_rows + _error(problem.precision, problem.k, [problem.a]) * summed
    sums = [] if problem.sums is None else [w.sum(axis=0).astype(np.float32)[None, None, None]]
    known = [] if problem.moments is None else [_moments(x, problem.kind).astype(np.float32)]
    operands = _operands(problem.epilogue, exact.shape, rng)
    output, allowed = _finish(problem, exact, error, operands)
    return RandomCase((a, b, *operands, *sums, *known), output, allowed)


def _moments(rows: Array, kind: NormKind) -> Array:
    """Of each group of columns, as a product stores them (`wpk.problems.MomentsMatmul`)."""
    groups = rows.reshape(*rows.shape[:-1], -1, moments_group(rows.shape[-1]))
    mean = groups.mean(axis=-1, keepdims=True) if kind is NormKind.LAYER else np.zeros(1)
    squares = ((groups - mean) ** 2).mean(axis=-1, keepdims=True)
    found = np.concatenate([mean, squares], axis=-1) if kind is NormKind.LAYER else squares
    return found.reshape(*rows.shape[:-1], -1)


def _attention(problem: Attention, rng: np.random.Generator) -> RandomCase:
    batch, rows, keys = (problem.batch[0].value, problem.batch[1]), problem.queries, problem.keys
    shared = problem.heads_of_keys
    factors = [
        _draw(rng, _stored((batch[0], *shape), tensor), tensor.dtype)
        for tensor, shape in (
            (problem.q, (batch[1], rows, problem.depth)),
            (problem.k, (shared, keys, problem.depth)),
            (problem.v, (shared, keys, problem.width)),
        )
    ]
    whole = (*batch, rows, problem.width)
    operands = [
        *_operands(problem.scores, (*batch, rows, keys), rng),
        *_operands(problem.ending, whole, rng),
    ]
    q, k, v = (_wide(each) for each in factors)
    output, allowed = attend(problem, q, k, v, [_wide(each) for each in operands])
    output, allowed = (np.broadcast_to(each, whole) for each in (output, allowed))
    return RandomCase((*factors, *operands), output, allowed)


def _normalisation(problem: Normalisation, rng: np.random.Generator) -> RandomCase:
    shape, rows = (*problem.outer, *problem.row), (*problem.outer, problem.reduction)
    memory = [_draw(rng, _stored(shape, each), each.dtype) for each in problem.inputs]
    operands, wide = _operands(problem.epilogue, shape, rng), [_wide(each) for each in memory]
    x = np.broadcast_to(evaluate(problem.prologue, None, wide), shape)
    before = np.zeros_like(x)
    if not isinstance(problem.prologue, Operand):
        magnitude = np.abs(x) + sum(np.abs(each) for each in wide)
        before = np.asarray(SPECIAL_FUNCTIONS * _unit(problem) * magnitude)
    exponential = problem.kind in (NormKind.SOFTMAX, NormKind.LOG_SOFTMAX)
    error_of = _softmax_error if exponential else _norm_error
    x, before = x.reshape(rows), before.reshape(rows)
    exact, error = (
        each.reshape(shape) for each in (normalise(x, problem), error_of(problem, x, before))
    )
    output, allowed = _finish(problem, exact, error, operands)
    return RandomCase((*memory, *operands), output, allowed)


def _squeeze(problem: Squeeze, rng: np.random.Generator) -> RandomCase:
    n, c, hidden_size, k = problem.n.value, problem.c, problem.hidden_size, problem.k
    x = _draw(rng, (n, c, problem.pixels), problem.x.dtype)
    down, up = (
        _draw(rng, shape, problem.down.dtype, shape[1])
        for shape in ((hidden_size, c), (k, hidden_size))
    )
    domains = (n, hidden_size), (n, k), (n, k, problem.places)
    operands = [
        _operands(epilogue, domain, rng)
        for epilogue, domain in zip(
            (problem.hidden, problem.gates, problem.scaled), domains, strict=True
        )
    ]
    wide = [[_wide(each) for each in group] for group in operands]
    output, allowed = excite(problem, _wide(x), _wide(down), _wide(up), wide)
    return RandomCase(
        (x, _in_runs(down), _in_runs(up), *(each for group in operands for each in group)),
        output,
        allowed,
    )


def _feed_forward(problem: FeedForward, rng: np.random.Generator) -> RandomCase:
    """The first product as it would be stored, and what the second one makes of its errors and adds to them."""
    first, second = problem.first, problem.second
    case = _CASES[type(first)](first, rng)
    a, b, *behind = case.operands
    down = _draw(rng, (problem.hidden_size, problem.n), problem.down.dtype, problem.hidden_size)
    exact, size = (multiply(part(case.output), part(down), second) for part in (_wide, _magnitude))
    error = multiply(case.allowed, _magnitude(down), second)
    error = error + _error(problem.precision, problem.hidden_size, [problem.down]) * size
    operands = _operands(second.epilogue, exact.shape, rng)
    output, allowed = _finish(second, exact, error, operands)
    of_rows = [each[0, 0] for each in (*behind, *operands)]
    return RandomCase(
        (a[0, 0], _in_runs(b.T), _in_runs(down), *of_rows), output[0, 0], allowed[0, 0]
    )


def _norm_error(problem: Normalisation | NormedMatmul, x: Array, before: Array) -> Array:
    """Errors of mean, difference and scale to first order, as `wpk.checks.error_bounds` has them."""
    unit = _unit(problem)
    spread = unit * sqrt(problem.reduction)
    centred = problem.kind is NormKind.LAYER
    mean = x.mean(axis=-1, keepdims=True) if centred else np.zeros(1)
    d = x - mean
    scale = np.sqrt((d * d).mean(axis=-1, keepdims=True) + problem.epsilon)
    d_error = unit * (np.abs(x) + np.abs(mean)) + spread * np.abs(x).mean(axis=-1, keepdims=True)
    d_error = d_error + before + before.mean(axis=-1, keepdims=True)
    scale_error = (np.abs(d) * d_error).mean(axis=-1, keepdims=True) / scale + spread * scale
    return np.asarray(_SAFETY * (d_error + np.abs(d) * scale_error / scale) / scale)


def _softmax_error(problem: Normalisation, x: Array, before: Array) -> Array:
    """Of the weights or their logarithms, from the error of x and that of exponentials and sum."""
    below = np.abs(x - x.max(axis=-1, keepdims=True))
    relative = 2 * before.max(axis=-1, keepdims=True)
    relative = relative + _SAFETY * _unit(problem) * (sqrt(problem.reduction) + below + 4)
    logarithm = problem.kind is NormKind.LOG_SOFTMAX
    return np.asarray(relative if logarithm else relative * normalise(x, problem))


def _operands(epilogue: Epilogue, shape: tuple[int, ...], rng: np.random.Generator) -> list[Array]:
    return [_draw(rng, _stored(shape, each), each.dtype) for each in epilogue.operands]


def _finish(
    problem: Convolution | Matmul | Normalisation,
    exact: Array,
    error: Array,
    operands: Sequence[Array],
) -> tuple[Array, Array]:
    """The epilogue, and what it makes of an error either way."""
    wide = [_wide(each) for each in operands]
    output, up, down = (
        finish(problem.epilogue, acc, wide) for acc in (exact, exact + error, exact - error)
    )
    moved = np.maximum(np.abs(up - output), np.abs(down - output))
    magnitude = np.abs(output) + np.abs(exact) + sum((np.abs(each) for each in wide), np.zeros(1))
    unit = _unit(problem)
    own = SPECIAL_FUNCTIONS * unit * magnitude
    return output, moved + own + problem.y.dtype.unit_roundoff * np.abs(output) + unit


def _draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, terms: int = 1) -> Array:
    """Normal values, such that as many terms of them are summed to the order of one; of bytes any."""
    if dtype is DType.BOOL:
        return rng.random(shape) < 0.5
    if dtype.is_byte:
        limits = np.iinfo(dtype.numpy)
        return rng.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)
    return (rng.standard_normal(shape) / sqrt(terms)).astype(dtype.numpy)


def _in_runs(weight: Array) -> Array:
    """A weight as blocks of two products store it: rows of whole runs."""
    return np.pad(weight, ((0, 0), (0, whole_runs(weight.shape[1]) - weight.shape[1])))


def _stored(shape: tuple[int, ...], tensor: Tensor) -> tuple[int, ...]:
    """The shape with 1 where the tensor is broadcast."""
    return tuple(d if s else 1 for d, s in zip(shape, tensor.strides, strict=True))


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def _magnitude(array: Array) -> Array:
    return np.abs(array.astype(np.float64))


_CASES: dict[type[Problem], Callable[[Any, np.random.Generator], RandomCase]] = {
    Convolution: _convolution,
    ClampedConvolution: _convolution,
    Matmul: _matmul,
    MomentsMatmul: _moments_matmul,
    NormedMatmul: _normed_matmul,
    Attention: _attention,
    Normalisation: _normalisation,
    Squeeze: _squeeze,
    FeedForward: _feed_forward,
}
"""By kind: those with a reference here."""
