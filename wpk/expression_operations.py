"""The operations of expressions (`wpk.expression`): what each means, in NumPy, and what the performance models count.

Names are those of the structs in ``wpk/kernels/numbers/expression.cuh``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpk.error_function import erf


@dataclass(frozen=True)
class Operation:
    """One operation of the closed list.

    Attributes:
        arity: Number of arguments.
        numpy: Reference meaning on float arrays.
        flops: Operations counted by the performance models (special functions count 8).
    """

    arity: int
    numpy: Callable[..., Any]
    flops: int = 1


def _erf(x: np.ndarray) -> np.ndarray:
    given = np.asarray(x)
    return erf(given).astype(given.dtype)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(x)))


def _shifted_left(a: np.ndarray, by: np.ndarray) -> np.ndarray:
    lasts = (by >= 0) & (by < 64)
    return np.where(lasts, np.left_shift(a, np.where(lasts, by, 0)), 0).astype(a.dtype)


def _shifted_right(a: np.ndarray, by: np.ndarray) -> np.ndarray:
    lasts, sign = (by >= 0) & (by < 64), -(a < 0).astype(a.dtype)
    return np.where(lasts, np.right_shift(a, np.where(lasts, by, 0)), sign)


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Truncated towards zero; 0 where it is divided by that."""
    whole = np.floor_divide(a, np.where(b == 0, 1, b))
    inexact = whole * b != a
    return np.where(b == 0, 0, whole + (inexact & ((a < 0) != (b < 0)))).astype(a.dtype)


def _power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    result = np.power(base, np.where(exponent < 0, 0, exponent))
    below = np.where(np.abs(base) == 1, np.power(base, np.abs(exponent) & 1), 0)
    return np.where(exponent < 0, below, result).astype(base.dtype)


OPERATIONS: dict[str, Operation] = {
    "Add": Operation(2, np.add),
    "Sub": Operation(2, np.subtract),
    "Mul": Operation(2, np.multiply),
    "Div": Operation(2, np.divide, 4),
    "Max": Operation(2, np.maximum),
    "Min": Operation(2, np.minimum),
    "Pow": Operation(2, np.power, 16),
    "Mod": Operation(2, np.fmod, 8),
    "FloorMod": Operation(2, np.mod, 9),
    "Neg": Operation(1, np.negative),
    "Abs": Operation(1, np.abs),
    "Exp": Operation(1, np.exp, 8),
    "Log": Operation(1, np.log, 8),
    "Sqrt": Operation(1, np.sqrt, 4),
    "Reciprocal": Operation(1, np.reciprocal, 4),
    "Tanh": Operation(1, np.tanh, 8),
    "Sigmoid": Operation(1, _sigmoid, 8),
    "Erf": Operation(1, _erf, 16),
    "Sin": Operation(1, np.sin, 8),
    "Cos": Operation(1, np.cos, 8),
    "Tan": Operation(1, np.tan, 16),
    "Asin": Operation(1, np.arcsin, 8),
    "Acos": Operation(1, np.arccos, 8),
    "Atan": Operation(1, np.arctan, 8),
    "Sinh": Operation(1, np.sinh, 8),
    "Cosh": Operation(1, np.cosh, 8),
    "Asinh": Operation(1, np.arcsinh, 16),
    "Acosh": Operation(1, np.arccosh, 16),
    "Atanh": Operation(1, np.arctanh, 16),
    "Floor": Operation(1, np.floor),
    "Ceil": Operation(1, np.ceil),
    "RoundEven": Operation(1, np.rint),
    "Sign": Operation(1, np.sign),
    "Relu": Operation(1, lambda x: np.maximum(x, 0)),
    "Softplus": Operation(1, lambda x: np.logaddexp(x, 0), 16),
    "IsNan": Operation(1, lambda x: np.isnan(x).astype(np.asarray(x).dtype)),
    "Not": Operation(1, lambda x: (np.asarray(x) == 0).astype(np.asarray(x).dtype)),
    "Less": Operation(2, lambda a, b: (a < b).astype(np.result_type(a, b))),
    "LessOrEqual": Operation(2, lambda a, b: (a <= b).astype(np.result_type(a, b))),
    "Equal": Operation(2, lambda a, b: (a == b).astype(np.result_type(a, b))),
    "And": Operation(2, lambda a, b: ((a != 0) & (b != 0)).astype(np.result_type(a, b))),
    "Or": Operation(2, lambda a, b: ((a != 0) | (b != 0)).astype(np.result_type(a, b))),
    "BitAnd": Operation(2, np.bitwise_and),
    "BitOr": Operation(2, np.bitwise_or),
    "BitXor": Operation(2, np.bitwise_xor),
    "BitNot": Operation(1, np.bitwise_not),
    "ShiftLeft": Operation(2, _shifted_left),
    "ShiftRight": Operation(2, _shifted_right),
    "Where": Operation(3, lambda c, a, b: np.where(np.asarray(c) != 0, a, b)),
}
"""The closed list; booleans are 0 and 1. Those of bits are of integers, as `In` names them."""

OF_INTEGERS: dict[str, Callable[..., Any]] = {"Div": _quotient, "Pow": _power}
"""What means something else among integers than among floating point numbers."""
