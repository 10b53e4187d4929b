"""Quantisation to 8 bits without a division gives the bytes of IEEE 754's division, rounded to nearest, ties to even."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from wpk.dtypes import DType
from wpk.expression import Acc, Expression, Scalar, apply
from wpk.problems.quantisation import quantisation_of

SOURCE = "quantised"
SCALES = [0.0696, 1.0, 3.0, 2.0**-64, 2.0**64, 1e-12, 0.031199999153614044, 0.09999999403953552]
REFUSED = [
    *(0.0018692028243094683, 0.02172851376235485, 0.9609377384185791, 0.0013160697417333722),
]
"""Scales by which a float is within 2^-45 of the middle between a tie and its neighbour."""

LIMITS = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}
FORMS = [
    *(("to_uint8", DType.UINT8, 0), ("to_uint8_moved", DType.UINT8, 131)),
    *(("to_int8", DType.INT8, 0), ("to_int8_moved", DType.INT8, -5)),
    *(("to_float8_e4m3", DType.FP8_E4M3, 0), ("to_float8_e5m2", DType.FP8_E5M2, 0)),
]


def limited(argument: Expression, dtype: DType) -> Expression:
    least, most = LIMITS.get(dtype, (-dtype.largest, dtype.largest) if dtype.is_fp8 else (0, 0))
    raised = apply("Max", argument, Scalar(float(least)))
    return apply("Min", raised, Scalar(float(most)))


def expression(dtype: DType, scale: float, zero: float) -> Expression:
    quotient = apply("Div", Acc(), Scalar(scale))
    if dtype.is_fp8:
        return limited(quotient, dtype)
    steps = apply("RoundEven", quotient)
    return limited(apply("Add", steps, Scalar(float(zero))) if zero else steps, dtype)


def expected(x: npt.NDArray[np.float32], dtype: DType, scale: float, zero: int) -> Any:
    """The definition, in fp32."""
    with np.errstate(all="ignore"):
        quotient = x / np.float32(scale)
        if dtype.is_fp8:
            return np.clip(quotient, -dtype.largest, dtype.largest).astype(dtype.numpy)
        steps = np.clip(np.rint(quotient) + np.float32(zero), *LIMITS[dtype])
        return np.where(np.isnan(steps), 0, steps).astype(dtype.numpy)


def dividends(scales: list[float], dtype: DType) -> npt.NDArray[np.float32]:
    """Any bits; products of a scale and every tie, with the floats around them; and the extremes."""
    random = np.random.default_rng(7)
    any_bits = random.integers(0, 1 << 32, 20_000, dtype=np.uint64).astype(np.uint32)
    if dtype.is_fp8:
        codes = np.arange(0x80, dtype=np.uint8).view(dtype.numpy).astype(np.float64)
        numbers = codes[np.isfinite(codes)]
        ties = (numbers[1:] + numbers[:-1]) / 2
    else:
        ties = np.arange(1024) + 0.5
    near = np.concatenate([np.float32(scale * ties) for scale in scales])
    below, above = np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf))
    around = np.concatenate([near, below, above, np.nextafter(below, np.float32(0))])
    extremes = [0.0, np.inf, np.nan, 3.4028235e38, 1e-45, 2.0**-126]
    x = np.concatenate([any_bits.view(np.float32), around, np.array(extremes, np.float32)])
    both = np.concatenate([x, -x])
    return np.append(both, both[: both.size % 2]).astype(np.float32)


def quantised(emulate: Any, entry: str, dtype: DType, given: Any, x: Any) -> tuple[Any, Any]:
    """Bytes and floats that the kernel gives, a row a quantisation."""
    numbers = np.array([each.numbers() for each in given], np.float32)
    shape = (len(given), x.size)
    found, back = np.zeros(shape, np.uint8), np.zeros(shape, np.float32)
    emulate(SOURCE, entry, [x, numbers, found, back, x.size, len(given)], threads=32)
    return found.view(dtype.numpy), back


def as_bits(values: Any, dtype: DType) -> npt.NDArray[np.uint8]:
    """NaNs as one NaN."""
    if not dtype.is_fp8:
        return values.view(np.uint8)  # type: ignore[no-any-return]
    bits: npt.NDArray[np.uint8] = values.view(np.uint8)
    return np.where(np.isnan(values.astype(np.float32)), np.uint8(0x7F), bits)


@pytest.mark.parametrize(("entry", "dtype", "zero"), FORMS)
def test_every_tie_and_extreme_is_quantised_as_by_division(
    entry: str, dtype: DType, zero: int, emulate: Any
) -> None:
    given = [quantisation_of(expression(dtype, scale, zero), dtype) for scale in SCALES]
    assert [each and each.scale for each in given] == SCALES
    x = dividends(SCALES, dtype)
    found, back = quantised(emulate, entry, dtype, given, x)
    wanted = np.stack([expected(x, dtype, scale, zero) for scale in SCALES])
    np.testing.assert_array_equal(as_bits(found, dtype), as_bits(wanted, dtype))
    np.testing.assert_array_equal(back, wanted.astype(np.float32))
    assert len(np.unique(as_bits(found, dtype))) > 240


def test_scales_with_a_float_next_to_a_middle_are_refused() -> None:
    given = [quantisation_of(expression(DType.INT8, scale, 0), DType.INT8) for scale in REFUSED]
    assert [each and each.scale for each in given] == [1.0] * len(REFUSED)
    assert all(
        each and each.argument == apply("Div", Acc(), Scalar(s))
        for each, s in zip(given, REFUSED, strict=True)
    )


def test_these_dividends_tell_a_product_by_the_reciprocal_from_a_quotient(emulate: Any) -> None:
    given = quantisation_of(expression(DType.UINT8, 0.0696, 0), DType.UINT8)
    assert given is not None
    x, numbers = dividends([0.0696], DType.UINT8), np.array(given.numbers(), np.float32)
    numbers[3] = 0.0  # without the rest of the reciprocal
    found, back = np.zeros(x.size, np.uint8), np.zeros(x.size, np.float32)
    emulate(SOURCE, "to_uint8", [x, numbers, found, back, x.size, 1], threads=32)
    assert np.sum(found != expected(x, DType.UINT8, 0.0696, 0)) > 10


def test_every_byte_comes_back_as_its_number(emulate: Any) -> None:
    codes = np.arange(256, dtype=np.uint8)
    found = np.zeros((4, 256), np.float32)
    emulate(SOURCE, "restore_bytes", [codes, *found], threads=32)
    types = (np.int8, np.uint8, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
    for row, dtype in zip(found, types, strict=True):
        np.testing.assert_array_equal(row, codes.view(dtype).astype(np.float32))
