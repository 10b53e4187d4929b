"""How far a kernel's result may lie from the float64 reference: running error bounds, node by node.

Each tensor of an operator's body carries its float64 value and a bound on the kernel's error. The
rules follow from the arithmetic that every kernel uses: products round their operands to u_mul,
sums and everything element-wise are fp32 (u = 2^-24), values round to their type in memory (Higham,
Accuracy and Stability of Numerical Algorithms, sections 3.1 and 3.5).

    products      4 (u_mul + u sqrt(K)) (|x| * |w|)      K: products summed; on tensor cores, which
                  truncate each partial sum (Fasi et al., "Numerical behavior of NVIDIA tensor
                  cores", 2021), 2 u K / 8 more. u_mul is 0 where the operands lie in memory with 16
                  bits: their products are exact
    sums, means   4 u sqrt(K) sum|v|                     and the sum of the incoming errors
    element-wise  what the incoming errors change, tried in both directions, and the function's own
                  error: a few u of its result (single operations 1, special functions 8)
    softmax       y (2 max e + 4 u (sqrt(n) + |v - max v| + 4))
    layer norm    first-order propagation through mean and variance
    rounding      u_type |y| + half the smallest subnormal

The factor 4 and sqrt(K) (instead of 1 and K) make them probabilistic: about four standard deviations
for independent rounding errors (Higham and Mary, "A new approach to probabilistic rounding error
analysis", 2019).
"""

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from wpk.checks.bounded import Call, Floats, U, rounding
from wpk.checks.float64_nodes import Array

SAFETY = 4.0
_SPECIAL = 8.0
"""expf, logf, tanhf, erff and powf err by 4 ulp at most (CUDA C++ guide, mathematical functions)."""

_TENSOR_CORE_STEP = 8
"""Products that a tensor core adds at once at least, before it truncates the sum to fp32."""

Rule = Callable[[Call], "Floats | None"]


def bound_error(call: Call) -> Floats | None:
    """The error bound of a node's first output; None where it is exact.

    Raises:
        KeyError: There is no rule for the operator.
    """
    with np.errstate(all="ignore"):
        error = RULES[call.node.op_type](call)
    return error if error is not None and bool(np.any(error)) else None


def _exact(call: Call) -> Floats | None:
    """Movement and selection: errors go where the values go."""
    given = call.inputs[0] if call.inputs else None
    if given is None or given.error is None:
        return None
    return call.again({0: given.error})


def _products(call: Call) -> Floats:
    magnitudes = {0: np.abs(call.value(0)), 1: np.abs(call.value(1))}
    if len(call.inputs) > 2 and call.inputs[2] is not None:
        magnitudes[2] = np.abs(call.value(2))
    terms = _reduction(call)
    roundoff = SAFETY * (call.multiply_roundoff + U * sqrt(terms))
    if call.multiply_roundoff != U:
        roundoff += terms / _TENSOR_CORE_STEP * 2 * U
    error = _scaled(call, magnitudes)
    error *= roundoff
    none = {2: np.zeros_like(magnitudes[2])} if 2 in magnitudes else {}
    if call.errs(0):
        error += _scaled(call, {0: call.error(0), 1: magnitudes[1], **none})
    if call.errs(1):
        wide = magnitudes[0] + call.error(0)
        error += _scaled(call, {0: wide, 1: call.error(1), **none})
    return error


def _scaled(call: Call, changed: dict[int, Array]) -> Floats:
    """The product of magnitudes; a Gemm's factors may have different signs, so by parts."""
    alpha, beta = float(call.attribute("alpha", 1.0)), float(call.attribute("beta", 1.0))
    if alpha * beta >= 0 or 2 not in changed:
        product = call.again(changed)
        return np.abs(product, out=product)
    product = call.again({**changed, 2: np.zeros_like(changed[2])})
    return np.abs(product) + abs(beta) * np.abs(np.asarray(changed[2], np.float64))


def _reduction(call: Call) -> int:
    w: tuple[int, ...] = call.value(1).shape
    match call.node.op_type:
        case "Conv":
            return prod(w[1:])
        case "ConvTranspose":
            return w[0] // int(call.attribute("group", 1)) * prod(w[2:])
        case "Gemm":
            return w[1] if call.attribute("transB", 0) else w[0]
    return int(call.x.shape[-1])


def _mean(call: Call) -> Floats:
    count = max(1, call.x.size // max(1, call.y.size))
    own = SAFETY * U * sqrt(count) * call.again({0: np.abs(call.x)})
    return own + call.again({0: call.error(0)})


def _average_pool(call: Call) -> Floats:
    count = prod(call.attribute("kernel_shape", [1]))
    own = SAFETY * U * sqrt(count) * call.again({0: np.abs(call.x)})
    return own + call.again({0: call.error(0)})


def _largest(call: Call) -> Floats | None:
    """Max and min move by at most the largest error among their candidates."""
    if not call.errs(0):
        return None
    return np.full(call.y.shape, float(call.error(0).max()))


def _squares(call: Call) -> Floats:
    count = max(1, call.x.size // max(1, call.y.size))
    return np.abs(call.y) * SAFETY * U * (sqrt(count) + 2) + _moved(call, (0,))


def _softmax_axes(call: Call) -> tuple[int, ...]:
    return (int(call.attribute("axis", -1)) % call.x.ndim,)


def _softmax(call: Call) -> Floats:
    axes = _softmax_axes(call)
    x = np.asarray(call.x, np.float64)
    depth = np.where(np.isfinite(x), np.abs(x - x.max(axis=axes, keepdims=True)), 0.0)
    spread = 2.0 * call.error(0).max(axis=axes, keepdims=True)
    relative = spread + SAFETY * U * (sqrt(x.shape[axes[0]]) + depth + 4)
    # fp32 has no numbers under 2^-149: an exponential there is zero.
    error: Floats = np.asarray(call.y, np.float64) * relative + 2.0**-149
    return error


def _log_softmax(call: Call) -> Floats:
    axes = _softmax_axes(call)
    spread = 2.0 * call.error(0).max(axis=axes, keepdims=True)
    x = np.abs(np.asarray(call.x, np.float64))
    count = x.shape[axes[0]]
    largest = x.max(axis=axes, keepdims=True)
    error: Floats = spread + SAFETY * U * (sqrt(count) + np.abs(call.y) + largest)
    return error


def _row_axes(call: Call) -> tuple[int, ...]:
    rank = call.x.ndim
    if call.node.op_type == "InstanceNormalization":
        return tuple(range(2, rank))
    return tuple(range(int(call.attribute("axis", -1)) % rank, rank))


def _normalised(call: Call) -> Floats:
    """Y = g (v - mean) / s + b to first order: errors of v, mean, s, and of the arithmetic."""
    axes, x, e = _row_axes(call), np.asarray(call.x, np.float64), call.error(0)
    n = prod(x.shape[axis] for axis in axes)
    keep: dict[str, Any] = {"axis": axes, "keepdims": True}
    centred = call.node.op_type != "RMSNormalization"
    mean = x.mean(**keep) if centred else np.zeros(())
    d = x - mean
    scale = np.sqrt((d * d).mean(**keep) + float(call.attribute("epsilon", 1e-5)))
    mean_error = e.mean(**keep) + U * sqrt(n) * np.abs(x).mean(**keep) if centred else 0.0
    d_error = e + mean_error + U * (np.abs(x) + np.abs(mean))
    scale_error = (np.abs(d) * d_error).mean(**keep) / scale + SAFETY * U * sqrt(n) * scale
    relative = d_error / scale + np.abs(d) * scale_error / scale**2 + SAFETY * U * np.abs(d) / scale
    gamma = np.abs(np.asarray(_broadcast(call, 1), np.float64))
    beta = np.abs(np.asarray(_broadcast(call, 2), np.float64))
    error: Floats = relative * gamma + SAFETY * U * (np.abs(d) / scale * gamma + beta)
    return error


def _broadcast(call: Call, index: int) -> Array:
    """Scale or shift with the shape of the input: per channel for instance normalisation."""
    if index >= len(call.inputs) or call.inputs[index] is None:
        return np.asarray(1.0 if index == 1 else 0.0)
    values = call.value(index)
    if call.node.op_type == "InstanceNormalization":
        return values.reshape(-1, *(1,) * (call.x.ndim - 2))
    return values


def _elementwise(own: Callable[[Call], Floats]) -> Rule:
    def rule(call: Call) -> Floats | None:
        error = _moved(call, [i for i in range(len(call.inputs)) if call.errs(i)])
        error += own(call)
        return error

    return rule


def _moved(call: Call, indices: Sequence[int]) -> Floats:
    """What errors of some inputs can change, each tried in both directions."""
    y = np.asarray(call.y, np.float64)
    total = np.zeros(y.shape)
    for index in indices:
        value, error = np.asarray(call.value(index), np.float64), call.error(index)
        change = _distance(call.again({index: value + error}), y)
        np.maximum(change, _distance(call.again({index: value - error}), y), out=change)
        change[np.isnan(change)] = 0.0
        total += change
    return total


def _distance(fresh: Floats, y: Floats) -> Floats:
    """|fresh - y|, in the memory of the first."""
    fresh -= y
    return np.abs(fresh, out=fresh)


def _magnitude(call: Call) -> Floats:
    return _finite(call.y)


def _argument(call: Call) -> Floats:
    return _finite(call.x)


def _finite(values: Array) -> Floats:
    """Magnitudes, 0 where there is none."""
    size: Floats = np.asarray(np.abs(values), np.float64)
    size[~np.isfinite(size)] = 0.0
    return size


def _cast(call: Call) -> Floats | None:
    """The kernel rounds where the graph says so; the reference did not."""
    own = rounding(call.y, call.evaluate.cast_type) if call.evaluate.cast_type else None
    return own if call.inputs[0] is None or call.inputs[0].error is None else _added(own, call)


def _added(own: Floats | None, call: Call) -> Floats:
    moved = _moved(call, (0,))
    return moved if own is None else own + moved


_selection = _elementwise(lambda call: np.zeros(()))
_single = _elementwise(lambda call: U * _magnitude(call))
_special = _elementwise(lambda call: _SPECIAL * U * _magnitude(call))
# x times a bounded function that is computed with cancellation: its error is of the size of x.
_gated = _elementwise(lambda call: _SPECIAL * U * (_magnitude(call) + _argument(call)))
# Functions with a term of 1 that may cancel: their error is of the size of 1.
_saturating = _elementwise(lambda call: _SPECIAL * U * (_magnitude(call) + 1.0))

RULES: dict[str, Rule] = {
    **dict.fromkeys(
        (
            *("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Slice"),
            *("Identity", "Dropout", "Gather", "Pad", "Constant", "Concat", "Split"),
        ),
        _exact,
    ),
    **dict.fromkeys(("Shape", "Size"), lambda call: None),  # no error of the data reaches them
    **dict.fromkeys(("Conv", "ConvTranspose", "MatMul", "Gemm"), _products),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceL1", "GlobalAveragePool"), _mean),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "GlobalMaxPool", "MaxPool"), _largest),
    **dict.fromkeys(("ReduceSumSquare", "ReduceL2", "ReduceProd"), _squares),
    "ReduceLogSum": _elementwise(lambda call: _SPECIAL * U * (_magnitude(call) + 1.0)),
    "AveragePool": _average_pool,
    "Resize": _mean,
    "Upsample": _mean,
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    **dict.fromkeys(
        ("LayerNormalization", "RMSNormalization", "InstanceNormalization"), _normalised
    ),
    **dict.fromkeys(
        (
            *("Relu", "Max", "Min", "Clip", "Abs", "Neg", "Sign", "Where", "Not", "And", "Or"),
            *("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "IsNaN"),
            *("Floor", "Ceil", "Round"),
        ),
        _selection,
    ),
    "Cast": _cast,
    **dict.fromkeys(("Add", "Sub", "Mul", "LeakyRelu", "PRelu"), _single),
    "Sum": _elementwise(lambda call: U * sum(map(np.abs, _values(call)), np.zeros(call.y.shape))),
    **dict.fromkeys(
        ("Div", "Reciprocal", "Sqrt", "Exp", "Log", "Erf", "Tanh", "Pow", "Mod"), _special
    ),
    **dict.fromkeys(("Gelu", "Mish", "Swish", "HardSwish", "Softsign"), _gated),
    **dict.fromkeys(
        ("Elu", "Selu", "Sigmoid", "HardSigmoid", "Softplus", "Sin", "Cos"), _saturating
    ),
}
"""A rule for every operator that lowering carries (a test compares the lists)."""


def _values(call: Call) -> list[Array]:
    return [given.value for given in call.inputs if given is not None]
