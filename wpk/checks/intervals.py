"""The numbers of a type that `wpk.checks.compare` accepts, as an interval for every element.

What it accepts for one element has no gaps: the distance to the expectation, rounded, does not fall
as a number moves away, and infinity is accepted only next to the largest number or alone. So the
ends decide, and each is tried with the comparison itself.
"""

import numpy as np
from numpy.typing import NDArray

from wpk.blocks import by_blocks
from wpk.checks.bounded import integer_limits
from wpk.checks.compare import Floats, units
from wpk.checks.float64_nodes import Array
from wpk.checks.rounded import rounded

Words = NDArray[np.signedinteger]


def ordered(patterns: Words) -> Words:
    """Signed integers that lie as the floating point numbers of these patterns do; -0.0 below 0.0.

    A permutation of all patterns, and its own inverse: beyond the infinities come the NaNs.
    """
    words: Words = np.right_shift(patterns, 8 * patterns.itemsize - 1)
    words &= np.iinfo(words.dtype).max
    words ^= patterns
    return words


def accepted(
    expected: Array, tolerance: Floats | None, dtype: np.dtype[np.generic]
) -> tuple[Array, Array] | None:
    """Return the least and the largest number that is accepted for each element.

    Both are NaNs, the first and the last positive one, where NaN is expected.

    Args:
        expected: The expected numbers, in float64 or exact.
        tolerance: Allowed absolute difference; None asks for equality.
        dtype: The type of the numbers.

    Returns:
        The ends, in the shape of ``expected``; None where nothing is accepted for some element.
    """
    low, high = np.empty(expected.size, dtype), np.empty(expected.size, dtype)
    wanted = expected.ravel()
    allowed = None if tolerance is None else np.broadcast_to(tolerance, expected.shape).ravel()

    def fill(block: slice) -> bool:
        if allowed is None:
            with np.errstate(invalid="ignore"):
                low[block] = high[block] = wanted[block].astype(dtype)
            return bool(np.array_equal(low[block], wanted[block]))
        if dtype.kind in "biu":
            return _fill_whole(wanted[block], allowed[block], low[block], high[block])
        values = wanted[block].astype(np.float64)
        low[block], fits_low = _end(values, allowed[block], dtype, -1)
        high[block], fits_high = _end(values, allowed[block], dtype, 1)
        fits = fits_low & fits_high & (_order(low[block]) <= _order(high[block]))
        if fits.all():
            _widen(values, low[block], high[block])
        return bool(fits.all())

    if not all(by_blocks(expected.size, fill)):
        return None
    return low.reshape(expected.shape), high.reshape(expected.shape)


def _end(
    expected: Floats, tolerance: Floats, dtype: np.dtype[np.generic], side: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Return one end of the intervals, and where that end is really accepted."""
    with np.errstate(all="ignore"):
        end = rounded(expected + side * tolerance, dtype)
        rounded_out = ~_near(end, expected, tolerance) & np.isfinite(end)
    end = ordered(_order(end) - _order(end).dtype.type(side) * rounded_out).view(dtype)
    fits = _near(end, expected, tolerance)
    if not fits.all():
        end[~fits], fits[~fits] = _tried(expected[~fits], tolerance[~fits], dtype, side)
    return end, fits


def _fill_whole(expected: Array, tolerance: Floats, low: Array, high: Array) -> bool:
    """Fill in the ends for integers and booleans; return False where the type cannot hold what is expected."""
    low[...] = high[...] = expected.astype(low.dtype)
    loose = tolerance > 0.0
    if not np.array_equal(low[~loose], expected[~loose]):
        return False
    middle, reach = expected[loose].astype(np.float64), tolerance[loose]
    ends = (0.0, np.inf) if low.dtype.kind == "b" else integer_limits(low.dtype)
    low[loose] = np.clip(np.ceil(middle - reach), *ends).astype(low.dtype)
    high[loose] = np.clip(np.floor(middle + reach), *ends).astype(low.dtype)
    return True


def _near(numbers: Array, expected: Floats, tolerance: Floats) -> NDArray[np.bool_]:
    """Where numbers are accepted for their distance, a finite one: quicker than `units`."""
    with np.errstate(all="ignore"):
        distance = np.abs(numbers.astype(np.float64) - expected)
        return (distance <= tolerance) & (distance < np.inf)


def _tried(
    expected: Floats, tolerance: Floats, dtype: np.dtype[np.generic], side: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Do what `_end` does for infinities and NaN, and where nothing is accepted."""
    with np.errstate(all="ignore"):
        exact = expected + side * tolerance
        end = np.where(np.isnan(exact), expected, exact).astype(dtype)
    outside = units(end, expected, tolerance) > 1.0
    inwards = ordered(_order(end[outside]) - side).view(dtype)
    end[outside] = inwards
    outside[outside] = units(inwards, expected[outside], tolerance[outside]) > 1.0
    return end, ~outside


def _widen(expected: Floats, low: Array, high: Array) -> None:
    """Accept both zeros where one is accepted, and every positive NaN where NaN is expected."""
    bits, largest = np.dtype(f"i{low.itemsize}"), np.iinfo(f"i{low.itemsize}")
    low.view(bits)[low == 0] = largest.min
    high.view(bits)[high == 0] = 0
    nan, beyond = np.isnan(expected), np.array(np.inf).astype(low.dtype)
    first = largest.max if np.isnan(beyond) else beyond.view(bits) + 1  # E4M3 has one NaN
    low.view(bits)[nan], high.view(bits)[nan] = first, largest.max


def _order(numbers: Array) -> Words:
    return ordered(numbers.view(f"i{numbers.itemsize}"))
