"""Bound the magnitude that every tensor can have, whatever the inputs of the model are.

A bound b of a tensor means: no element is NaN, and none is larger than b, in float32 arithmetic in
any order of summation. Where values come from tables (embeddings) or through a normalisation, such
bounds exist although inputs are arbitrary; after a floating-point input they do not.
Interval arithmetic on |x|, with every sum and product enlarged for rounding.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes.core.exact import exact_values
from wpk.graph_passes.core.query import (
    ONNX_DOMAINS,
    dims,
    floats,
    given,
    holds_floats,
    rank,
    uniform,
)
from wpk.graph_passes.core.reductions import reduced_axes
from wpk.operators import OPERATORS, Magnitude, Row

Bounds = dict[str, float]

# A sum of K terms errs by less than K u / (1 - K u) of the sum of magnitudes (Higham, Accuracy and
# Stability of Numerical Algorithms, 2nd ed., eq. 3.7); for K up to 10^5 that is under 1 %.
_ROUNDING = 1.01
_MAX_TERMS = 100_000
_LARGEST = float(np.finfo(np.float32).max)
# A sum up to half a last place above the largest number still rounds to it.
_ROUNDS_TO_LARGEST = _LARGEST * (1 + 2.0**-26)


def magnitude_bounds(graph: gs.Graph, storage: DType = DType.FP32) -> Bounds:
    """Return the bound of every float32 tensor that has one, by name.

    Args:
        graph: Computes in float32.
        storage: The type in which tensors will be stored between operators; the bounds hold for
            values rounded to it, and a tensor that might overflow it has no bound.
    """
    bounds: Bounds = {}
    narrow = storage is not DType.FP32
    widened = 1.0 + 2.0 * storage.unit_roundoff if narrow else 1.0
    limit = storage.largest if narrow else _ROUNDS_TO_LARGEST
    for node in graph.nodes:
        row = OPERATORS.get(node.op) if node.domain in ONNX_DOMAINS else None
        if row is None or not all(_is_float32(tensor) for tensor in node.outputs):
            continue
        if any(_overflows(tensor, limit / widened) for tensor in node.inputs):
            continue
        bound = _result(row, node, bounds)
        if bound is not None and bound * widened <= limit:
            for tensor in node.outputs:
                bounds[tensor.name] = min(bound * widened, _LARGEST)
    return bounds


def _overflows(tensor: gs.Tensor, limit: float) -> bool:
    largest = _largest_held(tensor)
    return largest is not None and not largest <= limit


def _largest_held(tensor: gs.Tensor) -> float | None:
    """Return the largest magnitude that a constant holds, NaN where it holds one; None for others."""
    if not holds_floats(tensor):
        return None
    array = exact_values(tensor)
    return max(abs(float(array.max())), abs(float(array.min()))) if array.size else 0.0


def _is_float32(tensor: gs.Tensor) -> bool:
    return tensor.dtype is not None and tensor.dtype == np.float32


def _bound(tensor: gs.Tensor | None, bounds: Bounds) -> float | None:
    if tensor is None:
        return 0.0
    largest = _largest_held(tensor)
    if largest is None:
        return bounds.get(tensor.name)
    return largest if np.isfinite(largest) else None


def _result(row: Row, node: gs.Node, bounds: Bounds) -> float | None:
    """By the rule of the operator, else by what all its results lie between; NaN gives NaN."""
    if row.magnitude is not None:
        return _RULES[row.magnitude](node, bounds)
    if row.between is None or _first(node, bounds) is None:
        return None
    bound = max(map(abs, row.between))
    return bound if np.isfinite(bound) else None


def _first(node: gs.Node, bounds: Bounds) -> float | None:
    return _bound(node.inputs[0], bounds)


def _largest(node: gs.Node, bounds: Bounds) -> float | None:
    """Return the largest bound of the inputs; the condition of a Where has none."""
    found = [_bound(tensor, bounds) for tensor in node.inputs[node.op == "Where" :]]
    return None if None in found else max(bound for bound in found if bound is not None)


def _sum(node: gs.Node, bounds: Bounds) -> float | None:
    a, b = (_bound(tensor, bounds) for tensor in node.inputs)
    return None if a is None or b is None else a + b


def _product(node: gs.Node, bounds: Bounds) -> float | None:
    a, b = (_bound(tensor, bounds) for tensor in node.inputs)
    return None if a is None or b is None else _ROUNDING * a * b


def _quotient(node: gs.Node, bounds: Bounds) -> float | None:
    a, divisor = _first(node, bounds), floats(node.inputs[1])
    if a is None or divisor is None or not bool(np.isfinite(divisor).all()):
        return None
    smallest = float(np.abs(divisor).min(initial=np.inf))
    return _ROUNDING * a / smallest if smallest > 0.0 else None


def _count(tensor: gs.Tensor, axes: Iterable[int] | None) -> int | None:
    """Return how many elements lie along ``axes``; None when that is free, or too many to sum."""
    shape = dims(tensor)
    if shape is None or axes is None:
        return None
    sizes = [shape[axis] for axis in axes]
    known = [size for size in sizes if isinstance(size, int)]
    count = math.prod(known)
    return count if len(known) == len(sizes) and count <= _MAX_TERMS else None


def _mean(node: gs.Node, bounds: Bounds) -> float | None:
    """The sum behind a mean must not overflow either."""
    bound, source = _first(node, bounds), node.inputs[0]
    axes = reduced_axes(node) if node.op == "ReduceMean" else range(2, rank(source) or 2)
    count = _count(source, axes)
    if bound is None or count is None:
        return None
    return _ROUNDING * bound if bound * count < _LARGEST else None


def _matmul(node: gs.Node, bounds: Bounds) -> float | None:
    """Rows of |W| summed where the weights are known, else K times both bounds."""
    a, dimensions = _first(node, bounds), rank(node.inputs[1]) or 0
    if a is None or dimensions < 2 or node.attrs.get("transA", 0):
        return None
    axis = dimensions - (1 if node.attrs.get("transB", 0) else 2)
    terms, b = _count(node.inputs[1], [axis]), _bound(node.inputs[1], bounds)
    if terms is None or b is None:
        return None
    total, weight = terms * b, floats(node.inputs[1])
    if weight is not None:
        total = float(np.abs(weight).sum(axis=axis).max(initial=0.0))
    added = _bound(given(node, 2), bounds)
    if added is None:
        return None
    alpha, beta = float(node.attrs.get("alpha", 1.0)), float(node.attrs.get("beta", 1.0))
    return _ROUNDING * (abs(alpha) * a * total + abs(beta) * added)


def _layer_norm(node: gs.Node, bounds: Bounds) -> float | None:
    """|x - mean| / sqrt(var + eps) is at most sqrt(N) for N values, when eps > 0."""
    x, dimensions = _first(node, bounds), rank(node.inputs[0])
    if x is None or dimensions is None or len(node.outputs) > 1:
        return None
    count = _count(node.inputs[0], range(int(node.attrs.get("axis", -1)) % dimensions, dimensions))
    if count is None:
        return None
    epsilon = float(node.attrs.get("epsilon", 1e-5))
    # Squares of differences are summed before the root: they must not overflow.
    if not 4.0 * x * x * count * _ROUNDING < _LARGEST:
        return None
    if epsilon < float(np.finfo(np.float32).tiny):
        return None
    scale, bias = _bound(given(node, 1), bounds), _bound(given(node, 2), bounds)
    if scale is None or bias is None:
        return None
    return _ROUNDING * _ROUNDING * (float(np.sqrt(count)) * scale + bias)


def _clip(node: gs.Node, bounds: Bounds) -> float | None:
    """NaN passes through a Clip, so its bounds alone prove nothing."""
    x, low, high = _first(node, bounds), uniform(given(node, 1)), uniform(given(node, 2))
    if x is None:
        return None
    return x if low is None or high is None else max(abs(low), abs(high))


_RULES: dict[Magnitude, Callable[[gs.Node, Bounds], float | None]] = {
    Magnitude.FIRST: _first,
    Magnitude.LARGEST: _largest,
    Magnitude.BRANCHES: _largest,
    Magnitude.CLIPPED: _clip,
    Magnitude.SUM: _sum,
    Magnitude.FACTORS: _product,
    Magnitude.QUOTIENT: _quotient,
    Magnitude.MEAN: _mean,
    Magnitude.PRODUCTS: _matmul,
    Magnitude.LAYER_NORM: _layer_norm,
}
