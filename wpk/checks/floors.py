"""What error bounds are at least, for a fraction of what they take: an element within its floor needs no bound.

A floor lies nowhere above the bound (`wpk.checks.error_bounds`) of the same node, whose inputs' floors lie nowhere
above their errors. So what a floor accepts the bound accepts, and what it does not accept the bound decides; no verdict
depends on a floor.

    products      the magnitudes of some of the K terms, at least 8 sqrt(K): none is negative. Rounding errors have
                  random signs, so that they add up to some sqrt(K) of them
    element-wise  the function's own error, and where it does not turn the change at one end of what the incoming errors
                  allow: the bound tries both ends of intervals that are no shorter
    Gelu          its own error, and e / 2 where x >= 0 and e / 8 where x >= -0.5, since its slope is no less there; below,
                  where the slope is 0 at x = -0.7518, the lesser of 0.2 |x + 0.7518| and |y| / 2, times an error of at most 0.1
    Exp, Sigmoid, its own error, and what its slope at x and an error of at most 0.1 make: y e, y (1 - y) e / 2 and
    Tanh          (1 - y^2) e / 2, as the latter two slopes fall by exp(-2 e) at most
    softmax       its own error without what depends on how far an element lies below the largest
    others        views, casts, maxima, means and normalisations: the bound's own rule, which does not fall where errors rise

NumPy rounds bounds and floors, to some 2^-50 of the numbers themselves, while both count 2^-24 of these at least.
Whoever judges by a floor takes `MARGIN` of it, which leaves more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import ceil, sqrt

import numpy as np
import onnx

from wpk.checks.bounded import Ball, Call, Floats
from wpk.checks.bounds import sums
from wpk.checks.error_bounds import bound_error, own_error
from wpk.checks.reference.softmax import softmax_axes
from wpk.dtypes import is_float
from wpk.operators import OperatorKind, of_kind

MARGIN = 1.0 - 2.0**-20
"""The part of a floor that is taken."""

_TERMS_A_ROOT = 8
"""Terms of a product whose magnitudes are added, for each unit of the root of their number."""

_SHORT = 0.1
"""Errors that are taken to be no larger where a slope changes."""

_LEAST_GELU = -0.7518
"""Where Gelu is least, to four places."""


def has_floors(nodes: Iterable[onnx.NodeProto]) -> bool:
    """Tell whether all nodes of a body have floors, and one at least such as take less than its bound."""
    kinds = {node.op_type for node in nodes}
    return kinds <= _RULES.keys() | _AS_BOUNDED and not kinds.isdisjoint(_RULES)


def least_error(call: Call) -> Floats | None:
    """Return what the error bound of a node's output is at least; None for 0.

    Args:
        call: The node, of a body with floors (`has_floors`); the errors of its inputs are floors, too.
    """
    rule = _RULES.get(call.node.op_type)
    if rule is None or not is_float(call.y.dtype):
        return bound_error(call)
    with np.errstate(all="ignore"):
        error = np.broadcast_to(rule(call), call.y.shape)
    return error if error.any() else None


def _products(call: Call) -> Floats:
    """The bound of a part of the terms, by the number of all."""
    terms, weight = sums.terms_of(call), call.value(1)
    axis, own_axis = (1, 1) if call.node.op_type == "Conv" else (call.x.ndim - 1, weight.ndim - 2)
    length = call.x.shape[axis]
    kept = ceil(_TERMS_A_ROOT * sqrt(terms) * length / terms)
    if own_axis < 0 or weight.shape[own_axis] != length or 2 * kept > length:
        return sums.products(call)  # of vectors, of groups, or of few terms
    first, second, *others = call.inputs
    cut = (_beginning(first, axis, kept), _beginning(second, own_axis, kept), *others)
    return sums.products_of(replace(call, inputs=cut), terms)


def _beginning(ball: Ball | None, axis: int, count: int) -> Ball | None:
    """The first elements along an axis."""
    if ball is None:
        return None
    at = (slice(None),) * axis + (slice(count),)
    error = None if ball.error is None else np.broadcast_to(ball.error, ball.value.shape)[at]
    return Ball(ball.value[at], error)


def _rising(*places: int) -> Callable[[Call], Floats]:
    """A function that does not turn as one of these operands moves, or any if none is named."""

    def rule(call: Call) -> Floats:
        error = own_error(call)
        for place in places or range(len(call.inputs)):
            if call.errs(place):
                moved = call.again({place: call.end(place, 1)})
                moved -= np.asarray(call.y, np.float64)
                error = error + np.abs(moved, out=moved)
        return error

    return rule


def _sloped(slope: Callable[[Floats, Floats, Floats], Floats]) -> Callable[[Call], Floats]:
    """A function of which ``slope`` says how far an error moves it at least, by argument, result and error."""

    def rule(call: Call) -> Floats:
        error = own_error(call)
        if call.errs(0):
            x, y = np.asarray(call.x, np.float64), np.asarray(call.y, np.float64)
            error = error + slope(x, y, call.error(0))
        return error

    return rule


def _gelu(x: Floats, y: Floats, error: Floats) -> Floats:
    below = np.minimum(0.2 * np.abs(x - _LEAST_GELU), 0.5 * np.abs(y)) * np.minimum(error, _SHORT)
    return np.where(x >= -0.5, np.where(x >= 0.0, 0.5, 0.125) * error, below)


def _sigmoid(_x: Floats, y: Floats, error: Floats) -> Floats:
    return 0.5 * y * (1.0 - y) * np.minimum(error, _SHORT)


def _tanh(_x: Floats, y: Floats, error: Floats) -> Floats:
    return 0.5 * (1.0 - y * y) * np.minimum(error, _SHORT)


def _exp(_x: Floats, y: Floats, error: Floats) -> Floats:
    return y * np.minimum(error, _SHORT)


def _softmax(call: Call) -> Floats:
    axes = softmax_axes(call.node, call.x.ndim, call.evaluate.opset)
    return sums.own_of_softmax(call, axes, 0.0)


_RULES: dict[str, Callable[[Call], Floats]] = {
    **dict.fromkeys(("Add", "Max", "Min", "Mul", "Relu", "Sub"), _rising()),
    **dict.fromkeys(("Clip", "Div", "HardSigmoid"), _rising(0)),
    **dict.fromkeys(("Erf", "HardSwish", "Sqrt"), own_error),
    **dict.fromkeys(("Conv", "MatMul"), _products),
    "Exp": _sloped(_exp),
    "Gelu": _sloped(_gelu),
    "Sigmoid": _sloped(_sigmoid),
    "Softmax": _softmax,
    "Tanh": _sloped(_tanh),
}

_AS_BOUNDED = frozenset(of_kind(OperatorKind.VIEW)).union(
    (
        "AveragePool",
        "Cast",
        "Concat",
        "Constant",
        "Gather",
        "GlobalAveragePool",
        "Identity",
        "MaxPool",
        "Slice",
        "Split",
    ),
    ("LayerNormalization", "RMSNormalization", "ReduceMax", "ReduceMean"),
)
"""Operators whose bounds do not fall where the errors of their inputs rise, and take little."""
