"""Rows of functions of one variable, the activations of networks among them."""

import math
from collections.abc import Sequence

import numpy as np

from wpk.expression import Expression, Scalar, apply
from wpk.operators.formulas import ANY_ACTIVATION, GATED, SATURATING, SINGLE, SPECIAL, direct
from wpk.operators.row import (
    Attributes,
    ErrorRule,
    Integers,
    Magnitude,
    OperatorKind,
    Rewrite,
    Roundoff,
    Row,
)

_E, _ONE, _FIRST = OperatorKind.ELEMENTWISE, Roundoff.ONE, Magnitude.FIRST
_SIGNED, _SHARE, _POSITIVE = (-1.0, 1.0), (0.0, 1.0), (0.0, math.inf)
_VIEWS, _ACTIVATION = Rewrite.BEFORE_VIEWS, Rewrite.BEFORE_VIEWS | Rewrite.ACTIVATION
_SELU_ALPHA = 1.67326319217681884765625  # ONNX's default
_SELU_GAMMA = 1.05070102214813232421875


def _attribute(attributes: Attributes, name: str, default: float) -> float:
    """An attribute; ONNX holds its default, as any other, in fp32."""
    return float(attributes.get(name, np.float32(default)))


def _leaky(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    return _negative_slope(inputs[0], Scalar(_attribute(attributes, "alpha", 0.01)))


def _negative_slope(x: Expression, slope: Expression) -> Expression:
    return apply("Where", apply("Less", x, Scalar(0.0)), apply("Mul", x, slope), x)


def _prelu(inputs: Sequence[Expression], _: Attributes) -> Expression:
    return _negative_slope(inputs[0], inputs[1])


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
        apply("Mul", inputs[0], Scalar(_attribute(attributes, "alpha", 0.2))),
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


# name, kind, formula, error, roundoff, magnitude, integers
ROWS = (
    Row("Exp", _E, direct("Exp"), SPECIAL, between=_POSITIVE, is_sensitive=True, rewrites=_VIEWS),
    Row("Log", _E, direct("Log"), SPECIAL, is_sensitive=True, rewrites=_VIEWS),
    Row("Erf", _E, direct("Erf"), SPECIAL, _ONE, between=_SIGNED, is_sensitive=True, rewrites=_VIEWS),
    Row("Sin", _E, direct("Sin"), SATURATING, _ONE, between=_SIGNED),
    Row("Cos", _E, direct("Cos"), SATURATING, _ONE, between=_SIGNED),
    Row("Tan", _E, direct("Tan"), SPECIAL, is_sensitive=True),
    Row("Asin", _E, direct("Asin"), SPECIAL, between=(-2.0, 2.0), is_sensitive=True),
    Row("Acos", _E, direct("Acos"), SATURATING, _ONE, between=(0.0, 4.0), is_sensitive=True),
    Row("Atan", _E, direct("Atan"), SPECIAL, between=(-2.0, 2.0)),
    Row("Sinh", _E, direct("Sinh"), SPECIAL, is_sensitive=True, rewrites=_VIEWS),
    Row("Cosh", _E, direct("Cosh"), SPECIAL, between=_POSITIVE, is_sensitive=True, rewrites=_VIEWS),
    Row("Asinh", _E, direct("Asinh"), SPECIAL),
    Row("Acosh", _E, direct("Acosh"), SPECIAL, between=_POSITIVE, is_sensitive=True),
    Row("Atanh", _E, direct("Atanh"), SPECIAL, is_sensitive=True),
    Row("Tanh", _E, direct("Tanh"), SPECIAL, _ONE, between=_SIGNED, rewrites=ANY_ACTIVATION),
    Row("Sigmoid", _E, direct("Sigmoid"), SATURATING, _ONE, between=_SHARE, rewrites=ANY_ACTIVATION),
    Row("HardSigmoid", _E, _hard_sigmoid, SATURATING, _ONE, between=_SHARE, rewrites=ANY_ACTIVATION),
    Row("Softsign", _E, _softsign, GATED, between=_SIGNED),
    Row("Softplus", _E, direct("Softplus"), SATURATING, _ONE, between=_POSITIVE, is_sensitive=True, rewrites=_ACTIVATION),
    Row("Relu", _E, direct("Relu"), ErrorRule.LIMITED, Roundoff.NONE, _FIRST, Integers.STAY, _POSITIVE, rewrites=ANY_ACTIVATION),
    Row("LeakyRelu", _E, _leaky, SINGLE, rewrites=_ACTIVATION),
    Row("PRelu", _E, _prelu, SINGLE),
    Row("Elu", _E, _elu, SATURATING, _ONE, rewrites=_ACTIVATION),
    Row("Selu", _E, _selu, SATURATING, _ONE, rewrites=_ACTIVATION),
    Row("HardSwish", _E, _hard_swish, GATED, _ONE, rewrites=ANY_ACTIVATION),
    Row("Gelu", _E, _gelu, GATED, _ONE, _FIRST, rewrites=ANY_ACTIVATION),
    Row("Mish", _E, _mish, GATED, _ONE, rewrites=_ACTIVATION),
    Row("Swish", _E, _swish, GATED, _ONE, rewrites=Rewrite.ACTIVATION),
)  # fmt: skip
