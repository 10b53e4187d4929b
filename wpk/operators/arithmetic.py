"""Rows of arithmetic, comparisons, logic and choice, element by element."""

import math
from collections.abc import Sequence

from wpk.dtypes import DType
from wpk.expression import Expression, Round, Scalar, apply
from wpk.operators.formulas import ANY_ACTIVATION, CHOOSES, SINGLE, SPECIAL, direct, fold, swapped
from wpk.operators.row import (
    Attributes,
    ErrorRule,
    Integers,
    Magnitude,
    OperatorKind,
    OwnError,
    Rewrite,
    Roundoff,
    Row,
)

_E, _RESULT, _NONE = OperatorKind.ELEMENTWISE, Roundoff.RESULT, Roundoff.NONE
_SUM, _FACTORS, _QUOTIENT = Magnitude.SUM, Magnitude.FACTORS, Magnitude.QUOTIENT
_FIRST, _LARGEST, _BRANCHES = Magnitude.FIRST, Magnitude.LARGEST, Magnitude.BRANCHES
_STAY, _WRAP, _COMPARE, _TRUTH = Integers.STAY, Integers.WRAP, Integers.COMPARE, Integers.TRUTH
_LIMITED, _COMPARED = ErrorRule.LIMITED, ErrorRule.COMPARED
_NO_EXPAND, _VIEWS = Rewrite.WITHOUT_EXPAND, Rewrite.BEFORE_VIEWS
_OPERATION = _NO_EXPAND | _VIEWS
_SIGN = _VIEWS | Rewrite.BEFORE_TRANSPOSE
_POSITIVE = (0.0, math.inf)


def cast(
    argument: Expression, source: DType, target: DType, *, saturates: bool = True
) -> Expression:
    """A Cast: rounding to a narrower floating point type, truncation to an integer, a test for bool, else nothing.

    Types of 16 bits hold every number of those of 8 bits.

    Args:
        argument: What is cast.
        source: Its type.
        target: The type that it becomes.
        saturates: Whether what 8 bits of floating point cannot hold becomes the largest number that they do.
    """
    if target.is_fp8 and source is not target:
        return Round(target, _limited(argument, target) if saturates else argument)
    if target is DType.BOOL and source is not DType.BOOL:
        return apply("Not", apply("Equal", argument, Scalar(0.0)))
    if source is DType.FP64 and target is DType.FP32:
        return Round(target, argument)
    if target in (DType.FP16, DType.BF16) and source is not target:
        return argument if source.bytes == 1 else Round(target, argument)
    if target.is_integer and (source.is_float or source.is_fp8):
        return Round(target, argument)
    return argument


def _limited(argument: Expression, dtype: DType) -> Expression:
    """A number within what a type holds; NaN stays."""
    largest = Scalar(dtype.largest)
    return apply("Min", apply("Max", argument, Scalar(-dtype.largest)), largest)


def _pow(inputs: Sequence[Expression], _: Attributes) -> Expression:
    base, exponent = inputs
    match exponent:
        case Scalar(2.0):
            return apply("Mul", base, base)
        case Scalar(3.0):
            return apply("Mul", base, apply("Mul", base, base))
    return apply("Pow", base, exponent)


def _mod(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    return apply("Mod" if attributes.get("fmod", 0) else "FloorMod", *inputs)


def _shift(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    return apply("ShiftLeft" if attributes["direction"] == "LEFT" else "ShiftRight", *inputs)


def _mean(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    total = fold("Add")(inputs, attributes)
    return total if len(inputs) == 1 else apply("Div", total, Scalar(float(len(inputs))))


def _is_infinite(inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    found = [
        apply("Equal", inputs[0], Scalar(value))
        for name, value in (("detect_positive", math.inf), ("detect_negative", -math.inf))
        if attributes.get(name, 1)
    ]
    return fold("Or")(found or [Scalar(0.0)], attributes)


def _differ(inputs: Sequence[Expression], _: Attributes) -> Expression:
    return apply("Not", apply("Equal", *inputs))


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


# name, kind, formula, error, roundoff, magnitude, integers, between
ROWS = (
    Row("Add", _E, direct("Add"), SINGLE, _RESULT, _SUM, _WRAP, rewrites=_OPERATION),
    Row("Sub", _E, direct("Sub"), SINGLE, _RESULT, _SUM, _WRAP, rewrites=_OPERATION),
    Row("Mul", _E, direct("Mul"), SINGLE, _RESULT, _FACTORS, _WRAP, rewrites=_OPERATION),
    Row("Div", _E, direct("Div"), SPECIAL, _RESULT, _QUOTIENT, _WRAP, rewrites=_OPERATION),
    Row("Mod", _E, _mod, SPECIAL, _RESULT, None, _STAY),
    Row("Pow", _E, _pow, SPECIAL, integers=_WRAP, is_sensitive=True, rewrites=_OPERATION),
    Row("Sum", _E, fold("Add"), OwnError(terms=1.0), _RESULT, None, _WRAP),
    Row("Mean", _E, _mean, OwnError(terms=2.0)),
    Row("Reciprocal", _E, direct("Reciprocal"), SPECIAL),
    Row("Sqrt", _E, direct("Sqrt"), SPECIAL, between=_POSITIVE, rewrites=_VIEWS),
    Row("Neg", _E, direct("Neg"), CHOOSES, _NONE, _FIRST, _WRAP, rewrites=_SIGN),
    Row("Abs", _E, direct("Abs"), CHOOSES, _NONE, _FIRST, _WRAP, _POSITIVE, rewrites=_SIGN),
    Row("Sign", _E, direct("Sign"), CHOOSES, _NONE, None, _STAY),
    Row("Floor", _E, direct("Floor"), CHOOSES, _NONE, rewrites=_VIEWS),
    Row("Ceil", _E, direct("Ceil"), CHOOSES, _NONE, rewrites=_VIEWS),
    Row("Round", _E, direct("RoundEven"), CHOOSES, _NONE, rewrites=_VIEWS),
    Row("Max", _E, fold("Max"), _LIMITED, _NONE, _LARGEST, _STAY, rewrites=_NO_EXPAND),
    Row("Min", _E, fold("Min"), _LIMITED, _NONE, _LARGEST, _STAY, rewrites=_NO_EXPAND),
    Row("Clip", _E, _clip, _LIMITED, _NONE, Magnitude.CLIPPED, _STAY, rewrites=ANY_ACTIVATION),
    Row("Equal", _E, direct("Equal"), _COMPARED, _NONE, None, _COMPARE, rewrites=_NO_EXPAND),
    Row("Less", _E, direct("Less"), _COMPARED, _NONE, None, _COMPARE, rewrites=_NO_EXPAND),
    Row("LessOrEqual", _E, direct("LessOrEqual"), _COMPARED, _NONE, None, _COMPARE),
    Row("Greater", _E, swapped("Less"), _COMPARED, _NONE, None, _COMPARE),
    Row("GreaterOrEqual", _E, swapped("LessOrEqual"), _COMPARED, _NONE, None, _COMPARE),
    Row("IsNaN", _E, direct("IsNan"), CHOOSES, _NONE, None, _COMPARE),
    Row("IsInf", _E, _is_infinite, CHOOSES, _NONE, None, _COMPARE),
    Row("And", _E, direct("And"), ErrorRule.LOGIC, _NONE, None, _TRUTH),
    Row("Or", _E, direct("Or"), ErrorRule.LOGIC, _NONE, None, _TRUTH),
    Row("Xor", _E, _differ, ErrorRule.EITHER, _NONE, None, _TRUTH),
    Row("Not", _E, direct("Not"), CHOOSES, _NONE, None, _TRUTH),
    Row("BitShift", _E, _shift, CHOOSES, _NONE, None, _WRAP),
    Row("BitwiseAnd", _E, direct("BitAnd"), CHOOSES, _NONE, None, _STAY),
    Row("BitwiseOr", _E, direct("BitOr"), CHOOSES, _NONE, None, _STAY),
    Row("BitwiseXor", _E, direct("BitXor"), CHOOSES, _NONE, None, _STAY),
    Row("BitwiseNot", _E, direct("BitNot"), CHOOSES, _NONE, None, _WRAP),
    Row("Where", _E, direct("Where"), ErrorRule.CHOICE, _NONE, _BRANCHES, _STAY, rewrites=_NO_EXPAND),
    Row("Cast", _E, None, ErrorRule.CAST, _NONE, rewrites=_VIEWS),
)  # fmt: skip
"""A Cast has no formula: its expression depends on types, see `cast`."""
