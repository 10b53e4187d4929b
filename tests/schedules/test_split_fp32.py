"""fp32 as three products of tf32: as exact as fp32 over adversarial operands, and what comes of extreme ones.

Errors are in units u = 2^-24 of the sum of the products' magnitudes, and stand beside those of a chain of fused
multiply-adds in fp32. The emulator rounds sums; hardware cuts them, so a model of that stands beside it: aligned to
the largest addend, cut to 24 bits, no bit more (Fasi et al., "Numerical behavior of NVIDIA tensor cores", 2021, find
more bits since A100).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.problems import Epilogue, Matmul, Tensor
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.mma_tiles import MmaSchedule
from wpk.schedules.packings import round_to_tf32

Array = np.ndarray[Any, Any]

SIZE = 16  # rows and columns of the products
DEPTH = 32  # of a slot: elements whose products are summed within the tensor cores, the most that schedules have
SCHEDULE = MmaSchedule(block_m=16, block_n=16, block_k=DEPTH, warps_m=1, warps_n=1, stages=2)
U = 2.0**-24
OWN = 32.0
"""What splitting and one slot may cost, whatever the reduction: two units for the rest of either operand, four for
the product left out, one to two for each of a slot's twelve products, whose sums grow: half of those."""

LARGEST = float(np.finfo(np.float32).max)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def positive(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    return np.abs(normal(rng, SIZE, depth)), np.abs(normal(rng, depth, SIZE))


def next_to_one(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    """Where a unit weighs most."""
    a, b = rng.random((SIZE, depth)), rng.random((depth, SIZE))
    return (1 + a * 2.0**-11).astype(np.float32), (1 + b * 2.0**-11).astype(np.float32)


def scattered(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    """Magnitudes from 2^-40 to 2^40 within each reduction."""
    a, b = (
        np.exp2(rng.uniform(-40, 40, (SIZE, depth))),
        np.exp2(rng.uniform(-40, 40, (depth, SIZE))),
    )
    return (
        (a * normal(rng, SIZE, depth)).astype(np.float32),
        (b * normal(rng, depth, SIZE)).astype(np.float32),
    )


def falling(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    a = normal(rng, SIZE, depth) * np.exp2(np.linspace(40, -40, depth))
    return a.astype(np.float32), normal(rng, depth, SIZE)


def rising(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    a, b = falling(rng, depth)
    return a[:, ::-1].copy(), b


def cancelling(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    """The second half takes away all but 2^-20 of the first."""
    a, b = normal(rng, SIZE, depth), normal(rng, depth, SIZE)
    half = depth // 2
    a[:, half:] = -a[:, :half]
    b[half:] = b[:half] * (1 + 2.0**-20 * rng.standard_normal((half, SIZE)))
    return a, b


OPERANDS: list[Callable[[np.random.Generator, int], tuple[Array, Array]]] = [
    *(lambda rng, depth: (normal(rng, SIZE, depth), normal(rng, depth, SIZE)), positive),
    *(next_to_one, scattered, falling, rising, cancelling),
]
EACH = pytest.mark.parametrize(
    "draw", OPERANDS, ids=["normal", *(each.__name__ for each in OPERANDS[1:])]
)


def errors(y: Array, a: Array, b: Array) -> float:
    """The largest error, in units."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float((np.abs(y - a @ b) / (np.abs(a) @ np.abs(b))).max() / U)


def fused_chain(a: Array, b: Array) -> Array:
    """What the ordinary cores give: products are exact in fp64, each addition is rounded to fp32."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        product = np.outer(a[:, k].astype(np.float64), b[k].astype(np.float64))
        total = (total.astype(np.float64) + product).astype(np.float32)
    return total.astype(np.float64)


def cut(values: Array, exponent: Array) -> Array:
    unit = np.ldexp(1.0, exponent - 24)
    return np.trunc(values / unit) * unit


def cut_product(total: Array, a: Array, b: Array) -> Array:
    """The total, and a b of one tensor-core instruction, eight products to a sum."""
    addends = np.concatenate([total[None], a.T[:, :, None] * b[:, None, :]])
    aligned = cut(addends, np.frexp(np.abs(addends).max(axis=0))[1]).sum(axis=0)
    return cut(aligned, np.frexp(aligned)[1])


def parts(values: Array) -> tuple[Array, Array]:
    """Big and small as the unit sees them."""
    big = round_to_tf32(values)
    small = ((values - big).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return big.astype(np.float64), small.astype(np.float64)


def modelled(a: Array, b: Array, depth: int) -> Array:
    """The product on tensor cores that cut, ``depth`` elements of the reduction to a sum."""
    (big_a, small_a), (big_b, small_b) = parts(a), parts(b)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for first in range(0, a.shape[1], depth):
        slot = np.zeros(total.shape)
        for k in range(first, min(first + depth, a.shape[1]), 8):
            at = slice(k, k + 8)
            for left, right in ((small_a, big_b), (big_a, small_b), (big_a, big_b)):
                slot = cut_product(slot, left[:, at], right[at])
        total = (total.astype(np.float64) + slot).astype(np.float32)
    return total.astype(np.float64)


def executed(execution: Any, a: Array, b: Array, schedule: MmaSchedule = SCHEDULE) -> Array:
    """The product by gemm_mma, in float64."""
    (m, k), n = a.shape, b.shape[1]
    tensors = [Tensor(DType.FP32, (0, 0, columns, 1)) for columns in (k, n, n)]
    problem = Matmul(
        *(Precision.FP32, (Extent(1), 1), Extent(m), n, k, tensors[0], tensors[1], False),
        *(tensors[2], Epilogue()),
    )
    memory = [
        execution.memory(tensor, values[None, None])
        for tensor, values in zip(tensors, (a, b), strict=False)
    ]
    y: Array = execution.run(GemmMmaTemplate(), problem, schedule, memory, (1, 1, m, n))[0, 0]
    return y


@EACH
@pytest.mark.parametrize("depth", [8, 32, 200, pytest.param(2304, marks=pytest.mark.slow)])
def test_errors_are_those_of_fp32(draw: Any, depth: int, fast_execution: Any) -> None:
    a, b = draw(np.random.default_rng(depth), depth)
    error = errors(executed(fast_execution, a, b), a, b)
    assert error <= errors(fused_chain(a, b), a, b) + OWN
    assert error <= 4 * (1 + np.sqrt(depth)), "as wpk.checks holds strict fp32"


@EACH
@pytest.mark.parametrize("depth", [8, 32, 64, 2304])
def test_errors_stay_so_where_sums_are_cut(draw: Any, depth: int) -> None:
    a, b = draw(np.random.default_rng(depth), depth)
    error = errors(modelled(a, b, DEPTH), a, b)
    assert error <= errors(fused_chain(a, b), a, b) + OWN
    assert error <= 4 * (1 + np.sqrt(depth)), "as wpk.checks holds strict fp32"


def test_long_sums_within_the_tensor_cores_would_be_no_fp32() -> None:
    a, b = next_to_one(np.random.default_rng(1), 2304)
    assert errors(modelled(a, b, 2304), a, b) > 4 * (1 + np.sqrt(2304))


def test_single_products_of_tf32_would_be_seen() -> None:
    a, b = positive(np.random.default_rng(2), 64)
    rounded = round_to_tf32(a).astype(np.float64) @ round_to_tf32(b).astype(np.float64)
    assert errors(rounded, a, b) > errors(fused_chain(a, b), a, b) + OWN


def single(execution: Any, a: Any, b: Any) -> Array:
    """The products of pairs of numbers: ``a[i] * b[i]``, all else zero."""
    products = []
    for left, right in np.broadcast(np.asarray(a, np.float32), np.asarray(b, np.float32)):
        x, w = np.zeros((SIZE, 8), np.float32), np.zeros((8, SIZE), np.float32)
        x[3, 5], w[5, 7] = left, right
        y = executed(execution, x, w, MmaSchedule(16, 16, 8, 1, 1, 2))
        products.append(y[3, 7])
    return np.asarray(products)


def test_one_times_a_number_is_that_number_but_for_its_last_bit(fast_execution: Any) -> None:
    rng = np.random.default_rng(4)
    x = np.zeros((SIZE, SIZE), np.float32) + normal(rng, SIZE, SIZE) * np.exp2(
        rng.integers(-100, 100, (SIZE, SIZE))
    ).astype(np.float32)
    y = executed(fast_execution, x, np.eye(SIZE, dtype=np.float32))
    assert (np.abs(y - x) <= 2.0**-23 * np.abs(x)).all()
    exact = executed(fast_execution, round_to_tf32(x), np.eye(SIZE, dtype=np.float32))
    np.testing.assert_array_equal(exact, round_to_tf32(x))


def test_infinities_are_those_of_fp32(checking_execution: Any) -> None:
    infinity = np.float32(np.inf)
    for left, right in ((infinity, 1.0), (-infinity, 1 / 3), (-infinity, -1e-30), (infinity, -2e3)):
        for pair in ((left, right), (right, left)):
            assert single(checking_execution, *pair) == np.float32(left) * np.float32(right)
    assert single(checking_execution, infinity, -infinity) == -np.inf
    assert np.isnan(single(checking_execution, infinity, np.float32("nan")))
    # Where products with the small part overflow, a number is lost, but never another one found.
    assert not np.isfinite(single(checking_execution, infinity, 1e5 / 3)).any()


def test_the_largest_numbers_do_not_become_infinite(fast_execution: Any) -> None:
    x = np.asarray([LARGEST, -LARGEST, np.nextafter(np.float32(LARGEST), np.float32(0))])
    np.testing.assert_allclose(single(fast_execution, x, 1.0), x, rtol=2.0**-22)
    np.testing.assert_allclose(single(fast_execution, 0.75, x), 0.75 * x, rtol=2.0**-22)
    assert single(fast_execution, LARGEST, 2.0) == np.inf


def test_numbers_beneath_those_of_tf32_keep_its_smallest_step(fast_execution: Any) -> None:
    rng = np.random.default_rng(6)
    for exponent, allowed in ((-111, 2.0**-134), (-120, 2.0**-136), (-135, 2.0**-136)):
        x = (rng.uniform(1, 2, 8) * 2.0**exponent).astype(np.float32)
        error = np.abs(single(fast_execution, x, 2.0**100) - x.astype(np.float64) * 2.0**100)
        assert (error <= allowed * 2.0**100).all()
