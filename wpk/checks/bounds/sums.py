"""Error bounds of products, sums, pools, normalisations and resampling: see `wpk.checks.error_bounds`."""

from math import prod, sqrt
from typing import Any

import numpy as np

from wpk.checks.bounded import Call, Floats
from wpk.checks.centred import EPSILON, row_axes, to_channels
from wpk.checks.float64_nodes import Array
from wpk.checks.reference.pooling import undecided_places
from wpk.checks.reference.resize import resampling
from wpk.checks.reference.softmax import softmax_axes
from wpk.dtypes import is_float

SAFETY = 4.0

_TENSOR_CORE_STEP = 8
"""Products that a tensor core adds at once at least, before it truncates the sum to fp32."""


def products(call: Call) -> Floats:
    return products_of(call, terms_of(call))


def products_of(call: Call, terms: int) -> Floats:
    """The arithmetic's own error and what errors of the first operand add are one product of magnitudes.

    Args:
        call: The product, or some of its terms.
        terms: How many there are in all.
    """
    left, right = np.abs(call.value(0)), np.abs(call.value(1))
    roundoff = SAFETY * (call.multiply_roundoff + call.roundoff * sqrt(terms))
    if call.multiply_roundoff != call.roundoff:
        roundoff += terms / _TENSOR_CORE_STEP * 2 * call.roundoff
    third: dict[int, Array] = {}
    if len(call.inputs) > 2 and call.inputs[2] is not None:
        size = np.abs(call.value(2))
        third = {2: roundoff * size + call.error(2) if call.errs(2) else roundoff * size}
    own = roundoff * left
    if call.errs(0):
        own += call.error(0)
    error = _scaled(call, {0: own, 1: right, **third})
    if call.errs(1):
        none = {place: np.zeros_like(each) for place, each in third.items()}
        wide = left + call.error(0) if call.errs(0) else left
        error += _scaled(call, {0: wide, 1: call.error(1), **none})
    return error


def _scaled(call: Call, changed: dict[int, Array]) -> Floats:
    """The product of magnitudes; a Gemm's factors may have different signs, so by parts."""
    if call.node.op_type != "Gemm" or 2 not in changed:
        product = call.again(changed)
        return np.abs(product, out=product)
    product = call.again({**changed, 2: np.zeros_like(changed[2])})
    beta = abs(float(call.attribute("beta", 1.0)))
    return np.abs(product) + beta * np.abs(np.asarray(changed[2], np.float64))


def terms_of(call: Call) -> int:
    """Return how many products an element is the sum of."""
    w: tuple[int, ...] = call.value(1).shape
    match call.node.op_type:
        case "Conv":
            return prod(w[1:])
        case "ConvTranspose":
            return w[0] // int(call.attribute("group", 1)) * prod(w[2:])
        case "Gemm":
            return w[1] if call.attribute("transB", 0) else w[0]
    return int(call.x.shape[-1])


def mean(call: Call) -> Floats:
    return _averaged(call, _terms(call))


def average_pool(call: Call) -> Floats:
    return _averaged(call, prod(call.attribute("kernel_shape", ())))


def _averaged(call: Call, terms: int) -> Floats:
    own = SAFETY * call.roundoff * sqrt(terms) * call.again({0: np.abs(call.x)})
    return own + call.again({0: call.error(0)})


def largest(call: Call) -> Floats | None:
    """Max and min move by at most the largest error among their candidates; where these are may be undecided."""
    if not call.errs(0):
        return None
    if call.place == 1:
        return _place_of_largest(call)
    sign = -1 if call.node.op_type == "ReduceMin" else 1
    error: Floats = sign * call.again({0: sign * call.error(0)})
    return np.maximum(error, 0.0)  # a window in the padding has the lowest number


def _place_of_largest(call: Call) -> Floats:
    names = ("auto_pad", "ceil_mode", "dilations", "pads", "strides")
    given = {name: _text(call.attribute(name, None)) for name in names}
    given |= {"auto_pad": given["auto_pad"] or "NOTSET", "ceil_mode": given["ceil_mode"] or 0}
    taps = call.attribute("kernel_shape", ())
    x = np.asarray(call.x, np.float64)
    return np.where(undecided_places(x, call.error(0), taps, **given), np.inf, 0.0)


def squares(call: Call) -> Floats:
    return np.abs(call.y) * SAFETY * call.roundoff * (sqrt(_terms(call)) + 2) + call.moved((0,))


def product(call: Call) -> Floats:
    """A part of a product may become less than the smallest number, and all the others multiply what is left."""
    most = call.again({0: np.maximum(np.abs(call.x), 1.0)})
    return squares(call) + _terms(call) * call.arithmetic.smallest * most


def running_sum(call: Call) -> Floats | None:
    """A sum of as many terms as the row has, at most."""
    if not is_float(call.y.dtype):
        return None
    return _averaged(call, _row_length(call))


def running_product(call: Call) -> Floats | None:
    """As `product`; what errors move is what they add to the product of magnitudes."""
    if not is_float(call.y.dtype):
        return None
    x, terms = np.abs(np.asarray(call.x, np.float64)), _row_length(call)
    size = call.again({0: x})
    moved = call.again({0: x + call.error(0)}) - size if call.errs(0) else 0.0
    most = call.again({0: np.maximum(x, 1.0)})
    own = SAFETY * call.roundoff * (sqrt(terms) + 2) * size
    error: Floats = own + terms * call.arithmetic.smallest * most + moved
    return error


def _row_length(call: Call) -> int:
    """Elements along the axis that a CumSum or CumProd runs along."""
    axis = int(np.asarray(call.value(1)).reshape(-1)[0])
    return int(call.x.shape[axis])


def log_sum(call: Call) -> Floats:
    """log(s (1 + r)), where r is the error of the sum relative to it."""
    size, moved = (np.exp(call.again({0: each})) for each in (np.abs(call.x), call.error(0)))
    relative = (SAFETY * call.roundoff * sqrt(_terms(call)) * size + moved) / np.exp(call.y)
    error: Floats = -np.log1p(-np.minimum(relative, 1.0)) + SAFETY * call.roundoff * np.abs(call.y)
    return error


def _terms(call: Call) -> int:
    """Elements that each element of a reduction is made of."""
    return max(1, call.x.size // max(1, call.y.size))


def softmax(call: Call) -> Floats:
    """What the inputs' errors can make of 1 / (1 + s exp(-v)), s being the sum of the others.

    An element far below the largest of its row has no weight, however large its error: the masked ones
    of an attention are such.
    """
    axes = softmax_axes(call.node, call.x.ndim, call.evaluate.opset)
    y = np.asarray(call.y, np.float64)
    depth = np.where(y > 0, np.abs(_from_largest(call, axes, 0)), 0.0)
    error = own_of_softmax(call, axes, depth)
    if call.errs(0):
        below, above = _from_largest(call, axes, -1), _from_largest(call, axes, 1)
        least = 1.0 / (1.0 + _others(above, axes) * np.exp(-below))
        most = 1.0 / (1.0 + _others(below, axes) * np.exp(-above))
        error += np.fmax(np.fmax(most - y, y - least), 0.0)
    return np.minimum(error, 1.0)


def own_of_softmax(call: Call, axes: tuple[int, ...], depth: Floats | float) -> Floats:
    """The arithmetic's own error, for elements that lie so far below the largest of their row."""
    y = np.asarray(call.y, np.float64)
    own = SAFETY * call.roundoff * (sqrt(_count(y, axes)) + depth + 4)
    # An exponential may be less than the smallest number: then it is zero.
    error: Floats = y * own
    error += call.arithmetic.smallest
    return error


def log_softmax(call: Call) -> Floats:
    """Errors of an element and of log(sum(exp)), which no element far below the largest can change."""
    axes = softmax_axes(call.node, call.x.ndim, call.evaluate.opset)
    largest = np.abs(np.asarray(call.x, np.float64).max(axis=axes, keepdims=True))
    own = SAFETY * call.roundoff * (sqrt(_count(call.x, axes)) + np.abs(call.y) + largest)
    if not call.errs(0):
        return np.asarray(own, np.float64)
    low, right, high = (
        np.log(np.exp(_from_largest(call, axes, side)).sum(axis=axes, keepdims=True))
        for side in (-1, 0, 1)
    )
    error: Floats = call.error(0) + np.fmax(high - right, right - low) + own
    return error


def _from_largest(call: Call, axes: tuple[int, ...], side: int) -> Floats:
    """Return one end of each input (-1: the lower, 0: itself, 1: the upper) less the largest of its row."""
    x = np.asarray(call.x, np.float64)
    end = x + side * call.error(0) if side else x
    distance: Floats = end - x.max(axis=axes, keepdims=True)
    return distance


def _others(distances: Floats, axes: tuple[int, ...]) -> Floats:
    """The sum of the exponentials of an element's row without its own, which may hide all others."""
    last = range(-len(axes), 0)
    moved = np.moveaxis(np.exp(distances), axes, last)
    rows = moved.reshape(*moved.shape[: -len(axes)], prod(moved.shape[-len(axes) :]))
    others = _before(rows) + _before(rows[..., ::-1])[..., ::-1]
    return np.moveaxis(others.reshape(moved.shape), last, axes)


def _before(rows: Floats) -> Floats:
    """The sum of what stands before each element of its row."""
    sums: Floats = np.cumsum(rows, axis=-1)
    return np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], axis=-1)


def _count(x: Array, axes: tuple[int, ...]) -> int:
    return prod(x.shape[axis] for axis in axes)


def normalised(call: Call) -> Floats:
    """Y = g (v - mean) / s + b to first order: errors of v, mean, s, and of the arithmetic."""
    x, e, u = np.asarray(call.x, np.float64), call.error(0), call.roundoff
    axes = row_axes(call.node, x.ndim)
    n = _count(x, axes)
    keep: dict[str, Any] = {"axis": axes, "keepdims": True}
    centred = call.node.op_type != "RMSNormalization"
    mean = x.mean(**keep) if centred else np.zeros(())
    d = x - mean
    scale = np.sqrt((d * d).mean(**keep) + float(call.attribute("epsilon", EPSILON)))
    mean_error = e.mean(**keep) + u * sqrt(n) * np.abs(x).mean(**keep) if centred else 0.0
    d_error = e + mean_error + u * (np.abs(x) + np.abs(mean))
    scale_error = (np.abs(d) * d_error).mean(**keep) / scale + SAFETY * u * sqrt(n) * scale
    normal = np.abs(d) / scale
    relative = d_error / scale + normal * scale_error / scale + SAFETY * u * normal
    gamma, beta = (np.abs(_parameter(call, index)) for index in (1, 2))
    gamma_error, beta_error = (to_channels(call.node, call.error(i), x.ndim) for i in (1, 2))
    own = SAFETY * u * (normal * gamma + beta)
    error: Floats = relative * gamma + own + normal * gamma_error + beta_error
    return error


def _parameter(call: Call, index: int) -> Floats:
    """Return the scale, or the shift where there is one, ready to be broadcast."""
    if index >= len(call.inputs) or call.inputs[index] is None:
        return np.zeros(())
    return to_channels(call.node, np.asarray(call.value(index), np.float64), call.x.ndim)


def resize(call: Call) -> Floats:
    """Weights and sums; and what coordinates that are computed with an error choose instead.

    A coordinate is a few operations on numbers no larger than itself and 1: their error moves it along
    a slope, or across the tie of the nearest sample. Each axis is tried in both directions.
    """
    given = [None if each is None else each.value for each in (*call.inputs, None, None, None)]
    attributes = {each.name: _text(call.attribute(each.name, None)) for each in call.node.attribute}
    places = (1, None) if call.node.op_type == "Upsample" else (2, 3)
    scales, sizes = (None if place is None else given[place] for place in places)
    error = SAFETY * call.roundoff * call.again({0: np.abs(call.x)}) + call.again(
        {0: call.error(0)}
    )
    how = resampling(call.x.shape, scales, sizes, attributes)
    off = SAFETY * call.roundoff
    if how is None:  # no slope is steeper than twice the largest number over one sample
        size, longest = float(np.abs(call.x).max(initial=0.0)), max(call.y.shape[1:], default=1)
        return error + off * (longest + 1.0) * 2.0 * size
    for axis in how.axes:
        moved = [how(call.x, {axis: side * off}) for side in (-1, 1)]
        error += np.maximum(*(np.abs(each - call.y) for each in moved))
    return error


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
