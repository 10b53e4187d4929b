"""ONNX element-wise operators as expressions."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from wpk.dtypes import DType
from wpk.expression import OPERATIONS, Expression, Round, Scalar, apply

Attributes = Mapping[str, Any]
Rule = Callable[[Sequence[Expression], Attributes], Expression]

_SELU_ALPHA = 1.67326319217681884765625  # ONNX's default
_SELU_GAMMA = 1.05070102214813232421875


def express(op: str, inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    """The expression of one ONNX node over the expressions of its inputs.

    Raises:
        KeyError: The operator is not element-wise, see `is_elementwise`.
    """
    return _RULES[op](inputs, attributes)


def is_elementwise(op: str) -> bool:
    """Whether `express` knows the operator."""
    return op in _RULES


def cast(argument: Expression, source: DType, target: DType) -> Expression:
    """A Cast: rounding to a 16-bit type, truncation to an integer, a test for bool, else nothing."""
    if target is DType.BOOL and source is not DType.BOOL:
        return apply("Not", apply("Equal", argument, Scalar(0.0)))
    if target in (DType.FP16, DType.BF16) and source is not target:
        return Round(target, argument)
    if not target.is_float and source.is_float:
        return Round(target, argument)
    return argument


def _direct(name: str) -> Rule:
    return lambda inputs, _: apply(name, *inputs)


def _fold(name: str) -> Rule:
    return lambda inputs, _: reduce(lambda a, b: apply(name, a, b), inputs)


def _clip(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    low = inputs[1] if len(inputs) > 1 else None
    high = inputs[2] if len(inputs) > 2 else None
    if "min" in attributes:
        low = Scalar(attributes["min"])
    if "max" in attributes:
        high = Scalar(attributes["max"])
    value = inputs[0]
    if low == Scalar(0.0):
        value = apply("Relu", value)
    elif low is not None and low != Scalar(-math.inf):
        value = apply("Max", value, low)
    return apply("Min", value, high) if high not in (None, Scalar(math.inf)) else value


def _leaky(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    return _negative_slope(inputs[0], Scalar(attributes.get("alpha", 0.01)))


def _negative_slope(x: Expression, slope: Expression) -> Expression:
    return apply("Where", apply("Less", x, Scalar(0.0)), apply("Mul", x, slope), x)


def _elu(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    return _exponential(inputs[0], attributes.get("alpha", 1.0), 1.0)


def _selu(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    return _exponential(
        inputs[0], attributes.get("alpha", _SELU_ALPHA), attributes.get("gamma", _SELU_GAMMA)
    )


def _exponential(x: Expression, alpha: float, gamma: float) -> Expression:
    below = apply("Mul", Scalar(alpha), apply("Sub", apply("Exp", x), Scalar(1.0)))
    both = apply("Where", apply("Less", x, Scalar(0.0)), below, x)
    return both if gamma == 1.0 else apply("Mul", Scalar(gamma), both)


def _hard_sigmoid(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    line = apply(
        "Add",
        apply("Mul", inputs[0], Scalar(attributes.get("alpha", 0.2))),
        Scalar(attributes.get("beta", 0.5)),
    )
    return apply("Min", apply("Relu", line), Scalar(1.0))


def _hard_swish(inputs: Sequence[Expression], _: Attributes) -> Expression:
    return apply("Mul", inputs[0], _hard_sigmoid(inputs, {"alpha": 1.0 / 6.0, "beta": 0.5}))


def _gelu(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    x = inputs[0]
    if attributes.get("approximate", "none") == "tanh":
        cube = apply("Mul", x, apply("Mul", x, x))
        inner = apply("Add", x, apply("Mul", Scalar(0.044715), cube))
        bell = apply("Tanh", apply("Mul", Scalar(math.sqrt(2.0 / math.pi)), inner))
    else:
        bell = apply("Erf", apply("Mul", x, Scalar(math.sqrt(0.5))))
    return apply("Mul", apply("Mul", Scalar(0.5), x), apply("Add", Scalar(1.0), bell))


def _mish(inputs: Sequence[Expression], _: Attributes) -> Expression:
    return apply("Mul", inputs[0], apply("Tanh", apply("Softplus", inputs[0])))


def _swish(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    scaled = apply("Mul", Scalar(attributes.get("alpha", 1.0)), inputs[0])
    return apply("Mul", inputs[0], apply("Sigmoid", scaled))


def _softsign(inputs: Sequence[Expression], _: Attributes) -> Expression:
    return apply("Div", inputs[0], apply("Add", Scalar(1.0), apply("Abs", inputs[0])))


def _swapped(name: str) -> Rule:
    return lambda inputs, _: apply(name, inputs[1], inputs[0])


def _pow(inputs: Sequence[Expression], _: Attributes) -> Expression:
    base, exponent = inputs
    match exponent:
        case Scalar(2.0):
            return apply("Mul", base, base)
        case Scalar(3.0):
            return apply("Mul", base, apply("Mul", base, base))
    return apply("Pow", base, exponent)


def _same(inputs: Sequence[Expression], _: Attributes) -> Expression:
    return inputs[0]


_RULES: dict[str, Rule] = {
    **{name: _direct(name) for name in OPERATIONS if name not in ("RoundEven", "IsNan", "Pow")},
    **{name: _fold(name) for name in ("Max", "Min")},
    "Sum": _fold("Add"),
    "Round": _direct("RoundEven"),
    "IsNaN": _direct("IsNan"),
    "Pow": _pow,
    "Greater": _swapped("Less"),
    "GreaterOrEqual": _swapped("LessOrEqual"),
    "Clip": _clip,
    "LeakyRelu": _leaky,
    "PRelu": lambda inputs, _: _negative_slope(inputs[0], inputs[1]),
    "Elu": _elu,
    "Selu": _selu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Gelu": _gelu,
    "Mish": _mish,
    "Swish": _swish,
    "Softsign": _softsign,
    "Identity": _same,
    "Dropout": _same,
}
