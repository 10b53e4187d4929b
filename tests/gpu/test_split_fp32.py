"""fp32 as three products of tf32 on the GPU: as exact as the model of cut sums says, and its extremes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.numbers.fp32_extremes import (
    check_that_infinities_become_no_numbers,
    check_that_numbers_beneath_those_of_tf32_keep_its_smallest_step,
    check_that_only_the_largest_numbers_become_no_numbers,
)
from support.numbers.fp32_operands import (
    DEPTH,
    OPERANDS,
    OWN,
    activations,
    errors,
    fused_chain,
    leaning,
    product_on,
)

from wpk.execution import Device
from wpk.schedules.tiles.mma import MmaSchedule

SCHEDULE = MmaSchedule(block_m=16, block_n=16, block_k=DEPTH, warps_m=1, warps_n=1, stages=2)

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("depth", [8, 32, 200, 2304])
@pytest.mark.parametrize("name", OPERANDS)
def test_errors_are_those_of_fp32(cuda: Device, name: str, depth: int) -> None:
    a, b = OPERANDS[name](np.random.default_rng(depth), depth)
    error = errors(product_on(cuda, a, b, SCHEDULE), a, b)
    assert error <= errors(fused_chain(a, b), a, b) + OWN
    assert error <= 4 * (1 + np.sqrt(depth)), "as wpk.checks holds strict fp32"


def test_sums_lean_to_neither_side(cuda: Device, record: Callable[[str, object], None]) -> None:
    """Tensor cores cut sums towards zero, 0.6 units a step of mma; what is given back is a guess at it."""
    a, b = activations(1152)
    schedule = replace(SCHEDULE, block_m=64, block_n=64, warps_m=2, warps_n=2)
    found = leaning(product_on(cuda, a, b, schedule), a, b)
    record("fp32 by mma: leaning", {"units": found})
    assert abs(found) <= 0.3


def test_infinities_become_no_numbers(cuda: Device) -> None:
    check_that_infinities_become_no_numbers(cuda)


def test_only_the_largest_numbers_become_no_numbers(cuda: Device) -> None:
    check_that_only_the_largest_numbers_become_no_numbers(cuda)


def test_numbers_beneath_those_of_tf32_keep_its_smallest_step(cuda: Device) -> None:
    check_that_numbers_beneath_those_of_tf32_keep_its_smallest_step(cuda)
