"""Error bounds of what is written by index: ScatterElements, ScatterND, TensorScatter, MaxUnpool and OneHot.

    none        the error of what an element keeps, or of the last update
    add         4 u sqrt(updates) of the sum of magnitudes, and the sum of the incoming errors
    mul         4 u sqrt(updates) of the product of magnitudes, and what incoming errors add to it
    max, min    the largest error among the candidates

Where an index may be another one, nothing is known of any element.
"""

import numpy as np

from wpk.checks.bounded import Call, Floats
from wpk.checks.bounds.sums import SAFETY
from wpk.dtypes import is_float


def written(call: Call) -> Floats | None:
    """Return the error bound of a node that writes by index; None where it is exact."""
    if call.node.op_type == "OneHot":
        return _one_hot(call)
    if call.node.op_type == "TensorScatter":
        return _cache(call)
    if call.errs(1):
        return np.full(call.y.shape, np.inf)
    if call.node.op_type == "MaxUnpool":
        return call.again({0: call.error(0)}) if call.errs(0) else None
    if not is_float(call.y.dtype):
        return None
    kind = call.attribute("reduction", b"none").decode()
    if kind in ("add", "mul"):
        return _combined(call, kind)
    if not call.errs(0) and not call.errs(2):
        return None
    sign = -1 if kind == "min" else 1
    error: Floats = sign * call.again({0: sign * _error(call, 0), 2: sign * _error(call, 2)})
    return error


def _one_hot(call: Call) -> Floats | None:
    if call.errs(0):
        return np.full(call.y.shape, np.inf)
    return call.again({2: call.error(2)}) if call.errs(2) else None


def _cache(call: Call) -> Floats | None:
    """Rows that are kept, and new ones, have their own errors."""
    if call.errs(2):
        return np.full(call.y.shape, np.inf)
    if not call.errs(0) and not call.errs(1):
        return None
    return call.again({0: _error(call, 0), 1: _error(call, 1)})


def _combined(call: Call, kind: str) -> Floats:
    """Elements that no update reaches are exact, but for their own errors."""
    x, updates = (np.abs(np.asarray(call.value(place), np.float64)) for place in (0, 2))
    size = call.again({0: x, 2: updates})
    ones = np.ones_like(updates)
    if kind == "add":
        reached = call.again({0: np.zeros_like(x), 2: ones})
        moved = call.again({0: _error(call, 0), 2: _error(call, 2)})
    else:
        reached = np.where(call.again({0: np.ones_like(x), 2: 2.0 * ones}) > 1.0, ones.size, 0.0)
        wide = call.again({0: x + _error(call, 0), 2: updates + _error(call, 2)})
        moved = wide - size
    return SAFETY * call.roundoff * np.sqrt(reached) * size + moved


def _error(call: Call, place: int) -> Floats:
    return np.broadcast_to(call.error(place), call.value(place).shape)
