"""How far a kernel's result may lie from the float64 reference: running error bounds, node by node.

Each tensor of an operator's body carries its float64 value and a bound on the kernel's error. The
rules follow from the arithmetic that every kernel uses: products round their operands to u_mul,
sums and everything element-wise are fp32 (u = 2^-24), or fp64 where a node has that (u = 2^-52: the
reference is fp64, too, and each of the two is off by as much; other arithmetic has another u), values round to
their type in memory (Higham, Accuracy and Stability of Numerical Algorithms, sections 3.1 and 3.5).
What is not floating point is exact but where errors let a tie go either way
(`wpk.checks.undecided`).

    products      4 (u_mul + u sqrt(K)) (|x| * |w|)      K: products summed; on tensor cores, which
                  truncate each partial sum (Fasi et al., "Numerical behavior of NVIDIA tensor
                  cores", 2021), 2 u K / 8 more. u_mul is 0 where the operands lie in memory with 16
                  bits: their products are exact
    sums, means   4 u sqrt(K) sum|v|                     and the sum of the incoming errors
    element-wise  what the incoming errors change, tried in both directions, and the function's own
                  error: a few u of its result (single operations 1, special functions 8)
    softmax       what errors make of 1 / (1 + sum of the others' exp(v_j - v)), and
                  4 u y (sqrt(n) + |v - max v| + 4)
    scatter       what goes into an element, as a sum, a product or a choice: `wpk.checks.bounds.writes`
    layer norm    first-order propagation through mean and variance
    resampling    what coordinates choose that are a few u off
    regions       of images: `wpk.checks.bounds.regions`
    determinants  `wpk.checks.bounds.determinants`
    rounding      u_type |y| + half the smallest subnormal
    recurrences   four times what roundings drawn at every step move the states by

The factor 4 and sqrt(K) (instead of 1 and K) make them probabilistic: about four standard deviations
for independent rounding errors (Higham and Mary, "A new approach to probabilistic rounding error
analysis", 2019).
"""

from collections.abc import Callable

import numpy as np

from wpk.checks.bounded import Call, Floats
from wpk.checks.bounds import sums as sums
from wpk.checks.bounds.determinants import determinant
from wpk.checks.bounds.recurrences import recurrence
from wpk.checks.bounds.regions import regions
from wpk.checks.bounds.writes import written
from wpk.checks.float64_nodes import Array
from wpk.checks.undecided import RULES as UNDECIDED
from wpk.dtypes import is_float
from wpk.operators import CHOOSES, OPERATORS, SPECIAL_ROUNDINGS, ErrorRule, OwnError

_TRIES = 4

Rule = Callable[[Call], "Floats | None"]


def bound_error(call: Call) -> Floats | None:
    """Return the error bound of a node's output; None where it is exact."""
    known = call.place == 0 or call.node.op_type in _KNOWN
    rule = _RULES.get(call.node.op_type, _unknown) if known else _unknown
    with np.errstate(all="ignore"):
        error = rule(call)
    return error if error is not None and bool(np.any(error)) else None


_KNOWN = ("Split", "Dropout", "TopK", "MaxPool", "LSTM", "GRU", "RNN", "DynamicQuantizeLinear")
"""Operators whose rules know all of their outputs."""


def _data(*places: int) -> Rule:
    """Movement and selection: errors of these inputs, of all if none is named, go where values go."""

    def rule(call: Call) -> Floats | None:
        chosen = [i for i in places or range(len(call.inputs)) if _is_given(call, i)]
        if not any(map(call.errs, chosen)):
            return None
        return call.again({index: call.error(index) for index in chosen})

    return rule


def _is_given(call: Call, index: int) -> bool:
    return index < len(call.inputs) and call.inputs[index] is not None


def _exact(call: Call) -> None:
    """The output is exact: no error of the data reaches it."""


def _dropout(call: Call) -> Floats | None:
    """Dropout passes the data on at inference; its mask is all true."""
    return _data(0)(call) if call.place == 0 else None


def _unknown(call: Call) -> Floats:
    """An operator that no kernel computes: taken to be as far off as slightly other inputs would put it.

    Errors of random signs need not meet in the worst way, so the largest change of any element is
    taken for all. Where no input can be changed, as those of windows, numbers around 1 may cancel.
    """
    rng, y, whole = (
        np.random.default_rng(0),
        np.asarray(call.y, np.float64),
        not is_float(call.y.dtype),
    )
    largest = 0.0
    for _ in range(_TRIES):
        changed: dict[int, Array] = {}
        for index, given in enumerate(call.inputs):
            if given is None or not is_float(given.value.dtype):
                continue
            own = 0.0 if whole else SPECIAL_ROUNDINGS * call.roundoff * np.abs(given.value)
            signs = rng.choice((-1.0, 1.0), given.value.shape)
            changed[index] = np.asarray(given.value, np.float64) + signs * (call.error(index) + own)
        largest = max(largest, float(np.nanmax(np.abs(call.again(changed) - y), initial=0.0)))
    if not whole and all(x is None or not is_float(x.value.dtype) for x in call.inputs):
        largest = call.roundoff * max(1.0, float(np.nanmax(np.abs(y), initial=0.0)))
    error: Floats = np.full(y.shape, sums.SAFETY * largest)
    return error if whole else error + SPECIAL_ROUNDINGS * call.roundoff * _finite(call.y)


def _elementwise(own: OwnError) -> Rule:
    def rule(call: Call) -> Floats | None:
        error = call.moved(i for i in range(len(call.inputs)) if call.errs(i))
        if is_float(call.y.dtype):  # integers do not round
            error += call.roundoff * _roundings(own, call)
        return error

    return rule


def own_error(call: Call) -> Floats:
    """Return how far the arithmetic of an element-wise function may be off on exact inputs; its output is floating point."""
    row = OPERATORS[call.node.op_type].error
    return call.roundoff * _roundings(row if isinstance(row, OwnError) else CHOOSES, call)


def _roundings(own: OwnError, call: Call) -> Floats:
    """How many times the roundoff a function's own arithmetic is off."""
    size: Floats = np.asarray(own.one)
    if own.result:
        size = size + own.result * _finite(call.y)
    if own.argument:
        size = size + own.argument * _finite(call.x)
    if own.terms:
        values = (np.abs(given.value) for given in call.inputs if given is not None)
        size = size + own.terms * sum(values, np.zeros(call.y.shape))
    return size


def _finite(values: Array) -> Floats:
    """Return magnitudes; 0 where a value is not finite."""
    size: Floats = np.asarray(np.abs(values), np.float64)
    size[~np.isfinite(size)] = 0.0
    return size


_selection = _elementwise(CHOOSES)


def _limited(call: Call) -> Floats | None:
    """One of several numbers is chosen, and its error comes with it."""
    error = _selection(call)
    if error is None or not call.arithmetic.other_forms:
        return error
    wrong = [call.error(i) for i in range(len(call.inputs)) if call.errs(i)]
    largest: Floats = np.maximum.reduce([np.broadcast_to(e, error.shape) for e in (error, *wrong)])
    return largest


_NAMED: dict[ErrorRule, Rule] = {
    **UNDECIDED,
    ErrorRule.EXACT: _exact,
    ErrorRule.DATA: _data(0),
    ErrorRule.ALL_DATA: _data(),
    ErrorRule.PADDED: _data(0, 2),
    ErrorRule.DROPOUT: _dropout,
    ErrorRule.LIMITED: _limited,
    ErrorRule.PRODUCTS: sums.products,
    ErrorRule.MEAN: sums.mean,
    ErrorRule.AVERAGE_POOL: sums.average_pool,
    ErrorRule.LARGEST: sums.largest,
    ErrorRule.SQUARES: sums.squares,
    ErrorRule.FACTORS: sums.product,
    ErrorRule.WRITTEN: written,
    ErrorRule.RUNNING_SUM: sums.running_sum,
    ErrorRule.RUNNING_PRODUCT: sums.running_product,
    ErrorRule.LOG_SUM: sums.log_sum,
    ErrorRule.RESAMPLED: sums.resize,
    ErrorRule.REGIONS: regions,
    ErrorRule.DETERMINANT: determinant,
    ErrorRule.SOFTMAX: sums.softmax,
    ErrorRule.LOG_SOFTMAX: sums.log_softmax,
    ErrorRule.NORMALISED: sums.normalised,
    ErrorRule.RECURRENT: recurrence,
}


def _rule(error: OwnError | ErrorRule | None) -> Rule:
    if error is None:
        return _unknown
    return _NAMED[error] if isinstance(error, ErrorRule) else _elementwise(error)


_RULES = {name: _rule(row.error) for name, row in OPERATORS.items()}
