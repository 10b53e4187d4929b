"""Error bounds where a value is chosen: what errors let a comparison, a rounding or an index choose.

A comparison of two numbers that lie no further apart than their errors may come out either way, and so
may what is made of it; any other is decided and must be right. An error of a boolean is 1 where it may
be either.

    Less(a, b), ...     |a - b| <= e_a + e_b
    And, Or             what both ends of their inputs make of it
    Xor                 either, where one of its inputs may be either
    Where(c, x, y)      the chosen one's error; where c may be either, |x - y| + e_x + e_y
    Cast to a boolean   |x| <= e
    Cast to an integer  both ends truncated; anything for NaN and what is beyond the type, which ONNX
                        leaves undefined
    Gather              the error of what the index chooses; where the index may be others, how far
                        what they choose lies from it
    QuantizeLinear and  both ends of x, divided by scales that are a few u off: what stands behind the
    QLinear...          multiplication of a sum of integers is one number for all of its roundings
    DynamicQuantize-    the same, and both ends of the largest and the least number
    Linear
    TopK, ArgMax        anything for the index of an element that a neighbour in the order is as close to as
                        their errors; a value moves by the largest error of its row
    NonMaxSuppression   anything, where boxes or scores err
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.checks.bounded import Call, Floats, rounding
from wpk.checks.reference.quantisation import BYTE_LIMIT, dynamic_parameters
from wpk.dtypes import is_float
from wpk.operators import SPECIAL_ROUNDINGS, ErrorRule

_TOUCHING = 1.0 + 1e-12
"""So much wider, intervals that touch each other overlap; those of exact numbers have no width."""

_MOST_INDICES = 16
"""How many neighbours of an index are looked at one by one; with more of them anything may be chosen."""


def _compared(call: Call) -> Floats | None:
    if not call.errs(0) and not call.errs(1):
        return None
    margin = call.error(0) + call.error(1)
    distance = np.abs(np.asarray(call.value(0), np.float64) - np.asarray(call.value(1), np.float64))
    reaches = (distance <= margin) & (margin > 0) & np.isfinite(distance)
    return np.asarray(reaches, np.float64)


def _both_ends(call: Call) -> Floats | None:
    """And and Or do not fall where an input rises, so both ends of their inputs decide."""
    chosen = [index for index in (0, 1) if call.errs(index)]
    if not chosen:
        return None
    low, high = (call.again({index: call.end(index, side) for index in chosen}) for side in (-1, 1))
    return high - low


def _either(call: Call) -> Floats | None:
    if not call.errs(0) and not call.errs(1):
        return None
    reaches = (call.error(0) > 0) | (call.error(1) > 0)
    return np.asarray(np.broadcast_to(reaches, call.y.shape), np.float64)


def _where(call: Call) -> Floats | None:
    if not any(map(call.errs, (0, 1, 2))):
        return None
    x, y = (np.asarray(call.value(index), np.float64) for index in (1, 2))
    first, second = call.error(1), call.error(2)
    error = np.where(call.value(0), first, second)
    if call.errs(0):
        between = np.where(x == y, 0.0, np.abs(x - y))  # the same infinity is no distance
        error = np.where(call.error(0) > 0, between + first + second, error)
    return np.asarray(np.broadcast_to(error, call.y.shape), np.float64)


def _cast(call: Call) -> Floats | None:
    if is_float(call.y.dtype):
        return _cast_to_float(call)
    if call.y.dtype.kind == "b":
        distance, margin = np.abs(np.asarray(call.x, np.float64)), call.error(0)
        return np.asarray((distance <= margin) & (margin > 0), np.float64)
    error = call.moved((0,)) if call.errs(0) else np.zeros(call.y.shape)
    if is_float(call.x.dtype) and call.y.dtype.kind in "iu":
        error[_beyond(call)] = np.inf
    return error


def _cast_to_float(call: Call) -> Floats | None:
    """The reference rounds where the graph says so; a kernel there, elsewhere, or not at all.

    What is exact it rounds to the same number, or not: one rounding lies between. What errs it may
    round to another: two.
    """
    target = call.evaluate.cast_type if call.arithmetic.narrows else None
    if not call.errs(0):
        return np.zeros(()) if target is None else rounding(call.y, target)
    if target is None:
        return call.moved((0,))
    error: Floats = call.error(0) + 2.0 * rounding(call.y, target)
    return error


def _beyond(call: Call) -> NDArray[np.bool_]:
    """Where a number, or one within its error, has no integer of the type."""
    limits: Any = np.iinfo(call.y.dtype.name)
    low, high = (np.trunc(np.asarray(call.end(0, side), np.float64)) for side in (-1, 1))
    beyond: NDArray[np.bool_] = ~((low >= limits.min) & (high < limits.max + 1.0))
    return beyond


def _gather(call: Call) -> Floats | None:
    moved = call.again({0: call.error(0)}) if call.errs(0) else np.zeros(call.y.shape)
    if not call.errs(1):
        return moved
    size = _indexed_sizes(call)
    given, error = np.asarray(call.value(1), np.int64), call.error(1)
    index = np.where(given < 0, given + size, given)
    far, worst = np.zeros(call.y.shape), moved.copy()
    y = np.asarray(call.y, np.float64)
    for step in range(int(min(error.max(), _MOST_INDICES)), 0, -1):
        for side in (-step, step):
            other = np.clip(index + np.where(error >= step, side, 0), 0, size - 1)
            np.maximum(far, np.abs(call.again({1: other}) - y), out=far)
            if call.errs(0):
                np.maximum(worst, call.again({0: call.error(0), 1: other}), out=worst)
    if error.max() > _MOST_INDICES:
        far[...] = np.inf
    return far + worst


_OUTPUT_SCALE = {"QuantizeLinear": 1, "QLinearConv": 6, "QLinearMatMul": 6}


def _quantised(call: Call) -> Floats:
    place = _OUTPUT_SCALE[call.node.op_type]
    scale = np.asarray(call.value(place), np.float64)
    erring = [index for index in range(len(call.inputs)) if index != place and call.errs(index)]
    y, error = np.asarray(call.y, np.float64), np.zeros(call.y.shape)
    for side in (-1, 1):
        ends = {index: call.end(index, side) for index in erring}
        for way in (-1, 1):
            moved = scale + way * (SPECIAL_ROUNDINGS * call.roundoff * scale + call.error(place))
            other = call.again({**ends, place: moved})
            apart = np.where(np.isnan(other) & np.isnan(y), 0.0, np.abs(other - y))
            np.maximum(error, np.where(np.isnan(apart), np.inf, apart), out=error)
    return error


def _dynamically_quantised(call: Call) -> Floats:
    """What the ends of the tensor's limits make of the scale, of the zero point, and of each number's byte."""
    x = np.asarray(call.x, np.float64)
    error, own = call.error(0), SPECIAL_ROUNDINGS * call.roundoff
    worst = np.zeros(call.y.shape)
    for way, side, other in product((-1, 1), repeat=3):
        low = np.min(x + side * error, initial=0.0)
        high = np.max(x + other * error, initial=0.0)
        scale, _ = dynamic_parameters(low, high)
        scale *= 1.0 + way * own
        zero = np.clip(np.rint(-low / scale), 0, BYTE_LIMIT)
        for end in (-1, 1):
            byte = np.clip(np.rint((x + end * error) / scale) + zero, 0, BYTE_LIMIT)
            found = (byte, np.asarray(scale), zero)[call.place]
            np.maximum(worst, np.abs(found - np.asarray(call.y, np.float64)), out=worst)
    return worst


def _indexed_sizes(call: Call) -> Any:
    """The extent that each number of the index counts along."""
    if call.node.op_type != "GatherND":
        return call.x.shape[int(call.attribute("axis", 0))]
    batch = int(call.attribute("batch_dims", 0))
    return np.array(call.x.shape[batch : batch + call.value(1).shape[-1]])


def _ranked(call: Call) -> Floats | None:
    """A sorted element may change places with any that may lie on its other side; equal exact ones may not."""
    if not call.errs(0):
        return None
    default = -1 if call.node.op_type == "TopK" else 0
    axis = int(call.attribute("axis", default)) % call.x.ndim
    if is_float(call.y.dtype):
        largest: Floats = call.error(0).max(axis, keepdims=True)
        return np.broadcast_to(largest, call.y.shape).copy()
    least = call.node.op_type == "ArgMin" or not call.attribute("largest", 1)
    x = np.moveaxis(np.asarray(call.x, np.float64), axis, -1) * (1.0 if least else -1.0)
    order = np.argsort(x, axis=-1, kind="stable")
    x = np.take_along_axis(x, order, -1)
    error = np.take_along_axis(np.moveaxis(call.error(0), axis, -1), order, -1) * _TOUCHING
    highest = np.maximum.accumulate(x + error, -1)[..., :-1]
    lowest = np.minimum.accumulate((x - error)[..., ::-1], -1)[..., ::-1][..., 1:]
    undecided = np.zeros(x.shape, bool)
    undecided[..., 1:] |= highest > (x - error)[..., 1:]
    undecided[..., :-1] |= lowest < (x + error)[..., :-1]
    count = call.y.shape[axis] if call.y.ndim == call.x.ndim else 1
    found = np.where(undecided[..., :count], np.inf, 0.0)
    return np.moveaxis(found, -1, axis).reshape(call.y.shape)


def _selected(call: Call) -> Floats | None:
    """Which boxes are selected, and so how many: of exact boxes and scores the same ones."""
    return np.full(call.y.shape, np.inf) if call.errs(0) or call.errs(1) else None


RULES: dict[ErrorRule, Callable[[Call], Floats | None]] = {
    ErrorRule.COMPARED: _compared,
    ErrorRule.LOGIC: _both_ends,
    ErrorRule.EITHER: _either,
    ErrorRule.CHOICE: _where,
    ErrorRule.CAST: _cast,
    ErrorRule.GATHERED: _gather,
    ErrorRule.QUANTISED: _quantised,
    ErrorRule.DYNAMICALLY_QUANTISED: _dynamically_quantised,
    ErrorRule.RANKED: _ranked,
    ErrorRule.SELECTED: _selected,
}
