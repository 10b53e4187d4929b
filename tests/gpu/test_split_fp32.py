"""fp32 as three products of tf32 on the GPU: as exact as the model of cut sums says, and its extremes."""

from __future__ import annotations

import numpy as np
import pytest
from fp32_extremes import (
    check_that_infinities_become_no_numbers,
    check_that_numbers_beneath_those_of_tf32_keep_its_smallest_step,
    check_that_only_the_largest_numbers_become_no_numbers,
)
from fp32_operands import (
    DEPTH,
    OPERANDS,
    OWN,
    errors,
    fused_chain,
    product_on,
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
    check_that_infinities_become_no_numbers(cuda)


def test_only_the_largest_numbers_become_no_numbers(cuda: Device) -> None:
    check_that_only_the_largest_numbers_become_no_numbers(cuda)


def test_numbers_beneath_those_of_tf32_keep_its_smallest_step(cuda: Device) -> None:
    check_that_numbers_beneath_those_of_tf32_keep_its_smallest_step(cuda)
