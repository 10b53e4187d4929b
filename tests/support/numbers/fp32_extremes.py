"""Extreme operands of fp32 as three products of tf32, held against any device that multiplies them."""

from __future__ import annotations

import numpy as np

from support.numbers.fp32_operands import LARGEST, products_on
from wpk.execution import Device


def check_that_infinities_become_no_numbers(device: Device) -> None:
    infinity, nan = np.float32(np.inf), np.float32(np.nan)
    for left in (infinity, -infinity, nan, -nan):
        for right in (1.0, -1 / 3, 1e30, 0.0, left):
            assert np.isnan(products_on(device, left, right))
            assert np.isnan(products_on(device, right, left))


def check_that_only_the_largest_numbers_become_no_numbers(device: Device) -> None:
    first = np.float32(2.0**128 - 2.0**116)  # that rounds up to infinity
    for sign in (-1, 1):
        assert np.isnan(products_on(device, sign * first, 1.0))
        assert np.isnan(products_on(device, 1.0, sign * LARGEST))
        last = sign * np.nextafter(first, np.float32(0))
        assert abs(products_on(device, last, 1.0) / last - 1) <= 2.0**-22
    # Of a product that overflows, so may the small ones, with any sign.
    assert not np.isfinite(products_on(device, 1e30, 1e30))


def check_that_numbers_beneath_those_of_tf32_keep_its_smallest_step(device: Device) -> None:
    rng = np.random.default_rng(6)
    for exponent, allowed in ((-111, 2.0**-134), (-120, 2.0**-136), (-135, 2.0**-136)):
        x = (rng.uniform(1, 2, 8) * 2.0**exponent).astype(np.float32)
        error = np.abs(products_on(device, x, 2.0**100) - x.astype(np.float64) * 2.0**100)
        assert (error <= allowed * 2.0**100).all()
