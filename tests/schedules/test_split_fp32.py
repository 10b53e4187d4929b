"""fp32 as three products of tf32: as exact as fp32 over adversarial operands, and what comes of extreme ones.

Errors are in units u = 2^-24 of the sum of the products' magnitudes, and stand beside those of a chain of fused
multiply-adds in fp32. The emulator rounds sums; hardware cuts them, so a model of that stands beside it: aligned to
the largest addend, cut to 24 bits, no bit more (Fasi et al., "Numerical behavior of NVIDIA tensor cores", 2021, find
more bits since A100).
"""

from typing import Any

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
    SIZE,
    activations,
    errors,
    fused_chain,
    leaning,
    next_to_one,
    normal,
    positive,
    product_on,
)

from wpk.emulator import CHECKING, FAST, Emulator
from wpk.schedules.packings import round_to_tf32
from wpk.schedules.tiles.mma import MmaSchedule

Array = np.ndarray[Any, Any]

MORE_BITS = 2
"""That sm_90 keeps of aligned addends beyond those of fp32; of 0 sums lean less, since each addend is cut apart."""

SCHEDULE = MmaSchedule(block_m=16, block_n=16, block_k=DEPTH, warps_m=1, warps_n=1, stages=2)
EACH = pytest.mark.parametrize("name", OPERANDS)


@pytest.fixture(name="emulator", params=[FAST, CHECKING], ids=["fast", "checking"])
def fixture_emulator(request: pytest.FixtureRequest) -> Emulator:
    """The emulator in either mode."""
    return Emulator(request.param)


def cut(values: Array, exponent: Array, bits: int = 24) -> Array:
    unit = np.ldexp(1.0, exponent - bits)
    return np.trunc(values / unit) * unit


def cut_product(total: Array, a: Array, b: Array, more_bits: int) -> Array:
    """The total, and a b of one tensor-core instruction, eight products to a sum."""
    addends = np.concatenate([total[None], a.T[:, :, None] * b[:, None, :]])
    largest = np.frexp(np.abs(addends).max(axis=0))[1]
    aligned = cut(addends, largest, 24 + more_bits).sum(axis=0)
    return cut(aligned, np.frexp(aligned)[1])


def parts(values: Array) -> tuple[Array, Array]:
    """Big and small as the unit sees them."""
    big = round_to_tf32(values)
    small = ((values - big).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return big.astype(np.float64), small.astype(np.float64)


def modelled(
    a: Array, b: Array, depth: int, more_bits: int = 0, small_first: bool = False
) -> Array:
    """The product on tensor cores that cut, ``depth`` elements of the reduction to a sum.

    ``small_first``: in all of a sum, as products of warpgroups have it, not in each step.
    """
    (big_a, small_a), (big_b, small_b) = parts(a), parts(b)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for first in range(0, a.shape[1], depth):
        slot = np.zeros(total.shape)
        steps = [slice(k, k + 8) for k in range(first, min(first + depth, a.shape[1]), 8)]
        small, big = ((small_a, big_b), (big_a, small_b)), ((big_a, big_b),)
        order = (small, big) if small_first else ((*small, *big),)
        for factors in order:
            for at in steps:
                for left, right in factors:
                    slot = cut_product(slot, left[:, at], right[at], more_bits)
        total = (total.astype(np.float64) + slot).astype(np.float32)
    return total.astype(np.float64)


@EACH
@pytest.mark.parametrize("depth", [8, 32, 200, pytest.param(2304, marks=pytest.mark.slow)])
def test_errors_are_those_of_fp32(name: str, depth: int) -> None:
    a, b = OPERANDS[name](np.random.default_rng(depth), depth)
    error = errors(product_on(Emulator(), a, b, SCHEDULE), a, b)
    assert error <= errors(fused_chain(a, b), a, b) + OWN
    assert error <= 4 * (1 + np.sqrt(depth)), "as wpk.checks holds strict fp32"


@EACH
@pytest.mark.parametrize("depth", [8, 32, 64, 2304])
def test_errors_stay_so_where_sums_are_cut(name: str, depth: int) -> None:
    a, b = OPERANDS[name](np.random.default_rng(depth), depth)
    error = errors(modelled(a, b, DEPTH), a, b)
    assert error <= errors(fused_chain(a, b), a, b) + OWN
    assert error <= 4 * (1 + np.sqrt(depth)), "as wpk.checks holds strict fp32"


def given_back(y: Array, bits: int) -> Array:
    """As giveBackCuts does (split_fp32.cuh)."""
    values = y.astype(np.float32)
    is_cut = values.view(np.uint32) & np.uint32((1 << bits) - 1) != 0
    return np.where(is_cut, np.nextafter(values, np.inf * np.sign(values)), values).astype(
        np.float64
    )


@pytest.mark.parametrize(("depth", "bits"), [(8, 1), (16, 2), (32, 3)])
def test_sums_that_are_cut_lean_to_neither_side(depth: int, bits: int) -> None:
    a, b = activations(288)
    y = modelled(a, b, depth, MORE_BITS, small_first=True)
    assert leaning(y, a, b) < -0.5
    assert abs(leaning(given_back(y, bits), a, b)) < 0.3


def test_long_sums_within_the_tensor_cores_would_be_no_fp32() -> None:
    a, b = next_to_one(np.random.default_rng(1), 2304)
    assert errors(modelled(a, b, 2304), a, b) > 4 * (1 + np.sqrt(2304))


def test_single_products_of_tf32_would_be_seen() -> None:
    a, b = positive(np.random.default_rng(2), 64)
    rounded = round_to_tf32(a).astype(np.float64) @ round_to_tf32(b).astype(np.float64)
    assert errors(rounded, a, b) > errors(fused_chain(a, b), a, b) + OWN


def test_one_times_a_number_is_that_number_but_for_its_last_bit(emulator: Emulator) -> None:
    rng = np.random.default_rng(4)
    x = np.zeros((SIZE, SIZE), np.float32) + normal(rng, SIZE, SIZE) * np.exp2(
        rng.integers(-100, 100, (SIZE, SIZE))
    ).astype(np.float32)
    y = product_on(emulator, x, np.eye(SIZE, dtype=np.float32), SCHEDULE)
    assert (np.abs(y - x) <= 2.0**-23 * np.abs(x)).all()
    exact = product_on(emulator, round_to_tf32(x), np.eye(SIZE, dtype=np.float32), SCHEDULE)
    np.testing.assert_array_equal(exact, round_to_tf32(x))


def test_infinities_become_no_numbers(emulator: Emulator) -> None:
    check_that_infinities_become_no_numbers(emulator)


def test_only_the_largest_numbers_become_no_numbers(emulator: Emulator) -> None:
    check_that_only_the_largest_numbers_become_no_numbers(emulator)


def test_numbers_beneath_those_of_tf32_keep_its_smallest_step(emulator: Emulator) -> None:
    check_that_numbers_beneath_those_of_tf32_keep_its_smallest_step(emulator)
