"""Quantisation to 8 bits as an expression has it, and the numbers by which kernels compute it without a division.

    limited(round(x / d) + z)          to integers, in either order of the two limits
    limited(x / d)                     to floating point of 8 bits

Where no known number divides, d is 1.

`wpk/kernels/numbers/quantised.cuh` divides by ``fma(x, reciprocal, x * rest)``, whose only errors in front of its
rounding are two of 2^-47 of the quotient. It gives another float than the division does only if the
quotient lies as close to the middle between two floats; and only if one of these two is a tie of the
rounding to 8 bits, something comes of it. So for each scale there are some hundred middles, and next to
each at most two floats x: `_is_exact` looks at all of them. Some scales out of ten thousand are refused:
there the division stays, and what it gives is quantised by 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.expression import Apply, Expression, Round, Scalar

_LEAST_SCALE, _MOST_SCALE = 2.0**-64, 2.0**64
_MOST_STEPS = 1 << 10
"""Steps on either side of 0 that limits may be away."""

_MARGIN = 2.0**-45
"""Twice what the quotient is off in front of its rounding, relative to it."""


@dataclass(frozen=True)
class Quantisation:
    """What becomes of an argument.

    Attributes:
        dtype: Of 8 bits.
        argument: What is divided.
        scale: By what.
        least: What the rounded quotient is limited to, without the zero point.
        most: The same from above.
        zero: The zero point; 0 in floating point.
        is_restored: Whether the zero point is taken off again.
    """

    dtype: DType
    argument: Expression
    scale: float
    least: float
    most: float
    zero: float = 0.0
    is_restored: bool = False

    @property
    def is_moved(self) -> bool:
        """Whether a zero point is added."""
        return self.zero != 0 and not self.is_restored

    @property
    def is_guarded(self) -> bool:
        """Whether NaN, which is 0 as an integer, is anything but what the lower limit gives."""
        return self.dtype.is_byte and self.least + self.zero != 0

    def numbers(self) -> tuple[float, ...]:
        """The numbers in the order of `QuantisationNumber`, wpk/kernels/numbers/quantised.cuh."""
        scale = np.float32(self.scale)
        limits = [float(np.float32(steps * float(scale))) for steps in (self.least, self.most)]
        of_nan = float(np.float32(-self.zero * float(scale)))
        return (*limits, *_reciprocal(scale), of_nan, float(self.zero))


def quantisation_of(expression: Expression, dtype: DType) -> Quantisation | None:
    """What an expression that is stored as a type of 8 bits quantises; None where it is no such form.

    Args:
        expression: What is brought to the type.
        dtype: The type.
    """
    if not (dtype.is_byte or dtype.is_fp8):
        return None
    limited = _limited(expression)
    if limited is None:
        return None
    inside, least, most = limited
    zero = 0.0
    if dtype.is_byte:
        match inside:
            case Apply("Add", (inner, Scalar(value))):
                inside, zero = inner, value
        match inside:
            case Apply("RoundEven", (quotient,)):
                inside = quotient
            case _:
                return None
    asked = least - zero, most - zero, zero
    match inside:
        case Apply("Div", (argument, Scalar(scale))):
            found = Quantisation(dtype, argument, scale, *asked)
            if _is_supported(found):
                return _without_relu(found)
    found = Quantisation(dtype, inside, 1.0, *asked)
    return found if _is_supported(found) else None


def restored_quantisation_of(expression: Expression) -> Quantisation | None:
    """What an expression quantises and takes back from memory, without its zero point where that is taken off."""
    match expression:
        case Round(dtype, argument):
            return quantisation_of(argument, dtype)
        case Apply("Add", (Round() as inner, Scalar(value))):
            found = restored_quantisation_of(inner)
            is_own = found is not None and value == -found.zero
            return replace(found, is_restored=True) if found is not None and is_own else None
    return None


def _limited(expression: Expression) -> tuple[Expression, float, float] | None:
    """What is limited, and to what."""
    for inner, outer in ((_raised, _lowered), (_lowered, _raised)):
        if (out := outer(expression)) is not None and (within := inner(out[0])) is not None:
            least, most = sorted((out[1], within[1]))
            return within[0], least, most
    return None


def _raised(expression: Expression) -> tuple[Expression, float] | None:
    match expression:
        case Apply("Max", (inner, Scalar(value))):
            return inner, value
        case Apply("Relu", (inner,)):
            return inner, 0.0
    return None


def _lowered(expression: Expression) -> tuple[Expression, float] | None:
    match expression:
        case Apply("Min", (inner, Scalar(value))):
            return inner, value
    return None


def _without_relu(found: Quantisation) -> Quantisation:
    """A Relu in front, as the lower limit, where NaN comes to the same and no zero has a sign."""
    match found.argument:
        case Apply("Relu", (inner,)) if found.dtype.is_byte and found.zero == 0:
            raised = replace(found, argument=inner, least=max(found.least, 0.0))
            return raised if not raised.is_guarded else found
    return found


def _is_supported(found: Quantisation) -> bool:
    scale = float(np.float32(found.scale))
    if not _LEAST_SCALE <= scale <= _MOST_SCALE or not found.least < found.most:
        return False
    ends = found.least + found.zero, found.most + found.zero
    if found.dtype.is_fp8:
        largest = found.dtype.largest
        return ends == (-largest, largest) and _is_exact(scale, found.dtype)
    limits = np.iinfo(found.dtype.numpy)
    whole = all(float(each).is_integer() for each in (*ends, found.zero))
    if not whole or ends[0] < limits.min or ends[1] > limits.max:
        return False
    return max(abs(found.least), abs(found.most)) < _MOST_STEPS and _is_exact(scale, found.dtype)


@lru_cache(maxsize=1 << 12)
def _reciprocal(scale: np.float32) -> tuple[float, float]:
    """The float below the reciprocal of a positive float, and what is left, rounded; both are positive."""
    divisor = np.longdouble(scale)
    below = np.float32(1 / divisor)
    while np.longdouble(below) * divisor >= 1:
        below = np.nextafter(below, np.float32(0))
    return float(below), float(np.float32((1 - np.longdouble(below) * divisor) / divisor))


@lru_cache(maxsize=1 << 12)
def _is_exact(scale: float, dtype: DType) -> bool:
    """Whether no float divided by the scale is too close to a middle next to a tie of the type."""
    for middles in _middles(dtype):
        products = middles * scale  # 25 bits times 24: exact
        near = products.astype(np.float32)
        for towards in (-np.inf, np.inf, None):
            x = near if towards is None else np.nextafter(near, np.float32(towards))
            if np.any(np.abs(x.astype(np.float64) - products) < _MARGIN * products):
                return False
    return True


@lru_cache(maxsize=8)
def _middles(dtype: DType) -> tuple[NDArray[np.float64], ...]:
    """The middles between each positive tie of a type and its neighbours in fp32."""
    ties = np.array(list(_ties(dtype)), np.float32)
    neighbours = (np.nextafter(ties, np.float32(end)) for end in (0, np.inf))
    return tuple((ties.astype(np.float64) + each.astype(np.float64)) / 2 for each in neighbours)


def _ties(dtype: DType) -> Iterator[float]:
    if dtype.is_byte:
        yield from (steps + 0.5 for steps in range(_MOST_STEPS))
        return
    codes = np.arange(0x80, dtype=np.uint8).view(dtype.numpy).astype(np.float64)
    numbers = codes[np.isfinite(codes)]
    yield from (numbers[1:] + numbers[:-1]) / 2
