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


def test_infinities_are_those_of_fp32(cuda: Device) -> None:
    infinity = np.float32(np.inf)
    for left, right in ((infinity, 1.0), (-infinity, 1 / 3), (-infinity, -1e-30), (infinity, -2e3)):
        for pair in ((left, right), (right, left)):
            assert products_on(cuda, *pair) == np.float32(left) * np.float32(right)
    assert np.isnan(products_on(cuda, infinity, np.float32("nan")))
    assert np.isnan(products_on(cuda, np.float32("nan"), 1.0))


def test_the_largest_numbers_do_not_become_infinite(cuda: Device) -> None:
    x = np.asarray([LARGEST, -LARGEST, np.nextafter(np.float32(LARGEST), np.float32(0))])
    np.testing.assert_allclose(products_on(cuda, x, 1.0), x, rtol=2.0**-22)
    assert products_on(cuda, LARGEST, 2.0) == np.inf


def test_numbers_beneath_those_of_tf32_keep_its_smallest_step(cuda: Device) -> None:
    rng = np.random.default_rng(6)
    for exponent, allowed in ((-111, 2.0**-134), (-120, 2.0**-136), (-135, 2.0**-136)):
        x = (rng.uniform(1, 2, 8) * 2.0**exponent).astype(np.float32)
        error = np.abs(products_on(cuda, x, 2.0**100) - x.astype(np.float64) * 2.0**100)
        assert (error <= allowed * 2.0**100).all()
