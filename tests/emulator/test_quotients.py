"""Division by a constant, which kernels do by its reciprocal, gives the bits of IEEE 754's division."""

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wpk.dtypes import DType
from wpk.expression import Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Elementwise, Tensor, lifted

Floats = npt.NDArray[np.float32]

KERNELS = Path(__file__).parent / "kernels"
SOURCE = "quotients"
_OTHERS = ["0", "-0", "inf", "-inf", "nan", "3.4028235e38", "-3.4028235e38", "1e-45", "-1e-45"]


def _divisors(text: str) -> Floats:
    bits = [int(found, 16) for found in re.findall(r"divide<(0x[0-9a-f]{8})u>", text)]
    return np.array(bits, np.uint32).view(np.float32)


def _dividends(divisors: Floats) -> Floats:
    """Of any bits; products of a divisor and an odd half, which are next to a tie; and the extremes."""
    random = np.random.default_rng(7)
    any_bits = random.integers(0, 1 << 32, 100_000, dtype=np.uint64).astype(np.uint32)
    near_one = random.uniform(-300, 300, 50_000).astype(np.float32)
    odd = random.integers(-(1 << 24), 1 << 24, (divisors.size, 4_000)) | 1
    with np.errstate(all="ignore"):
        ties = [each * (o / 2).astype(np.float32) for each, o in zip(divisors, odd, strict=True)]
        whole = [each * o.astype(np.float32) for each, o in zip(divisors, odd, strict=True)]
    near = np.concatenate([*ties, *whole])
    numbers = [any_bits.view(np.float32), near_one, near, np.nextafter(near, np.float32(0))]
    return np.concatenate([*numbers, np.array(_OTHERS, np.float32)]).astype(np.float32)


def _as_bits(values: Floats) -> npt.NDArray[np.uint32]:
    """NaNs as one NaN: which one a division gives is not said."""
    return np.where(np.isnan(values), np.float32(np.nan), values).view(np.uint32)


def test_quotients_are_correctly_rounded(emulate):
    divisors = _divisors((KERNELS / f"{SOURCE}.cu").read_text(encoding="utf-8"))
    x = _dividends(divisors)
    shape = (divisors.size, x.size)
    found, integers = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    emulate(SOURCE, "divide_by_constants", [x, found, integers, x.size], threads=64)
    with np.errstate(all="ignore"):
        expected = x / divisors[:, None]
    np.testing.assert_array_equal(_as_bits(found), _as_bits(expected))
    np.testing.assert_array_equal(_as_bits(integers), _as_bits(np.rint(expected)))


def test_quotients_by_arguments_are_too(emulate):
    """Divisors are those that `wpk.problems.lifted` makes arguments, its limits among them."""
    numbers = [0.0696, 1.0, 3.0, -0.0154, 2.0**-64, -(2.0**64) * 1.75, 1e-12]
    problem = lifted(_divided(numbers))
    assert len(problem.numbers) == 2 * len(numbers)
    pairs = np.array(problem.numbers, np.float32).reshape(-1, 2)
    divisors = pairs[:, 0].copy()
    x = _dividends(divisors)
    shape = (divisors.size, x.size)
    found, integers = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    given = [x, pairs.ravel().copy(), found, integers, x.size, divisors.size]
    emulate(SOURCE, "divide_by_arguments", given, threads=64)
    with np.errstate(all="ignore"):
        expected = x / divisors[:, None]
    np.testing.assert_array_equal(_as_bits(found), _as_bits(expected))
    np.testing.assert_array_equal(_as_bits(integers), _as_bits(np.rint(expected)))


def test_extreme_divisors_are_no_arguments():
    assert lifted(_divided([2.0**-65, 2.0**65, 0.0])).numbers == ()


def _divided(numbers: list[float]) -> Elementwise:
    """A quantised expression that divides by each number."""
    tensor, expression = Tensor(DType.INT8, (600, 1)), Operand(0)
    for number in numbers:
        expression = apply("Div", expression, Scalar(number))
    return Elementwise(Extent(3), (3, 600), expression, (tensor,), tensor)


def test_these_dividends_tell_a_product_by_the_reciprocal_from_a_quotient():
    divisor = np.array([0x3D8EA000], np.uint32).view(np.float32)
    x = _dividends(divisor)
    with np.errstate(all="ignore"):
        rough, right = x * (np.float32(1) / divisor), x / divisor
        assert np.mean(rough != right) > 0.05
        assert np.sum(np.rint(rough) != np.rint(right)) > 10
