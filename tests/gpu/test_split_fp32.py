"""fp32 as three products of tf32 on the GPU: as exact as the model of cut sums says, and its extremes."""

from __future__ import annotations

import numpy as np
import pytest
from fp32_operands import (
    DEPTH,
    LARGEST,
    OPERANDS,
    OWN,
    errors,
    fused_chain,
    product_on,
    products_on,
)

from wpk.execution import Device
from wpk.schedules.mma_tiles import MmaSchedule

SCHEDULE = MmaSchedule(block_m=16, block_n=16, block_k=DEPTH, warps_m=1, warps_n=1, stages=2)

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("depth", [8, 32, 200, 2304])
@pytest.mark.parametrize("name", OPERANDS)
def test_errors_are_those_of_fp32(cuda: Device, name: str, depth: int) -> None:
    a, b = OPERANDS[name](np.random.default_rng(depth), depth)
    error = errors(product_on(cuda, a, b, SCHEDULE), a, b)
    assert error <= errors(fused_chain(a, b), a, b) + OWN
    assert error <= 4 * (1 + np.sqrt(depth)), "as wpk.checks holds strict fp32"


def test_infinities_become_no_numbers(cuda: Device) -> None:
    infinity, nan = np.float32(np.inf), np.float32(np.nan)
    for left in (infinity, -infinity, nan, -nan):
        for right in (1.0, -1 / 3, 1e30, 0.0, left):
            assert np.isnan(products_on(cuda, left, right))
            assert np.isnan(products_on(cuda, right, left))


def test_only_the_largest_numbers_become_no_numbers(cuda: Device) -> None:
    first = np.float32(2.0**128 - 2.0**116)  # that rounds up to infinity
    for sign in (-1, 1):
        assert np.isnan(products_on(cuda, sign * first, 1.0))
        assert np.isnan(products_on(cuda, 1.0, sign * LARGEST))
        last = sign * np.nextafter(first, np.float32(0))
        assert abs(products_on(cuda, last, 1.0) / last - 1) <= 2.0**-22
    # Of a product that overflows, so may the small ones, with any sign.
    assert not np.isfinite(products_on(cuda, 1e30, 1e30))


def test_numbers_beneath_those_of_tf32_keep_its_smallest_step(cuda: Device) -> None:
    rng = np.random.default_rng(6)
    for exponent, allowed in ((-111, 2.0**-134), (-120, 2.0**-136), (-135, 2.0**-136)):
        x = (rng.uniform(1, 2, 8) * 2.0**exponent).astype(np.float32)
        error = np.abs(products_on(cuda, x, 2.0**100) - x.astype(np.float64) * 2.0**100)
        assert (error <= allowed * 2.0**100).all()
