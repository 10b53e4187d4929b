"""Float64 rounded to the type of a tensor, without what NumPy's own conversion to fp16 takes for small numbers."""

import numpy as np

from wpk.blocks import by_blocks
from wpk.checks.float64_nodes import Array
from wpk.reused_memory import empty

_DROPPED = 42
"""Bits of the fraction that fp64 has and fp16 has not."""

_REBIASED = ((15 - 1023) << 52) + (1 << (_DROPPED - 1)) - 1
"""Added to the bits of a number: the exponent as fp16 counts it, and half a unit less one bit."""

_INFINITE = 0x7C00
_FIRST_NORMAL = 0x0400

_SUBNORMAL_TOGETHER = 2.0 ** (52 - 24)
"""A number next to which fp64's unit is that of subnormal numbers of fp16, which are these units counted."""

_SUBNORMAL_BITS = int(np.float64(_SUBNORMAL_TOGETHER).view(np.int64))


def rounded(values: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return ``values.astype(dtype)`` to the bit, on all cores; what is beyond the type becomes infinite.

    NumPy reports the underflow of every number that is subnormal in fp16 to the processor, which takes 100 ns each:
    half of what a Relu gives is 0, and what may be written for it is subnormal.

    Args:
        values: In C order where they are many; of any type.
        dtype: Of the result.
    """
    if not values.flags.c_contiguous or values.size == 0:
        with np.errstate(all="ignore"):
            return values.astype(dtype)
    flat, found = values.reshape(-1), empty((values.size,), dtype)
    is_half = dtype == np.float16 and values.dtype == np.float64

    def fill(block: slice) -> None:
        with np.errstate(all="ignore"):
            if is_half:
                _fill_half(flat[block], found[block])
            else:
                found[block] = flat[block].astype(dtype)

    by_blocks(flat.size, fill)
    return found.reshape(values.shape)


def _fill_half(values: Array, found: Array) -> None:
    """Round to even in the bits of fp64: adding half a unit of fp16, less one bit where the unit is even, carries."""
    size = np.abs(values)
    bits = size.view(np.int64)
    odd = bits >> _DROPPED
    odd &= 1
    odd += bits
    odd += _REBIASED
    odd >>= _DROPPED
    half = np.minimum(odd, _INFINITE, out=odd)
    size += _SUBNORMAL_TOGETHER  # fp64 rounds to units of 2^-24 here
    bits -= _SUBNORMAL_BITS
    small = bits <= _FIRST_NORMAL
    np.copyto(half, bits, where=small)
    words = half.astype(np.uint16)
    words |= np.signbit(values).astype(np.uint16) << 15
    found.view(np.uint16)[...] = words
    nan = np.isnan(values)
    if nan.any():
        found[nan] = np.nan
