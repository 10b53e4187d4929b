"""Rounding to the types of tensors is NumPy's own, to the bit."""

import ml_dtypes
import numpy as np
import pytest

from wpk.checks.rounded import rounded

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


def _plain(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        return values.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("off", [0.0, 0.5, 0.4999999, 0.5000001, 0.25, -0.5])
def test_is_what_numpy_gives(dtype: type, off: float) -> None:
    """Every number of fp16, those halfway between it and the next, and those beside them."""
    following = np.roll(HALVES, -1)
    with np.errstate(all="ignore"):
        values = np.where(np.isfinite(following), HALVES + off * (following - HALVES), HALVES)
    kind = np.dtype(dtype)
    found, right = rounded(values, kind), _plain(values, kind)
    numbers = ~np.isnan(right.astype(np.float64))
    assert np.array_equal(_bits(found)[numbers], _bits(right)[numbers])
    assert np.array_equal(np.isnan(found.astype(np.float64)), ~numbers)


def test_keeps_shape_and_takes_other_orders_and_types() -> None:
    values = np.random.default_rng(0).standard_normal((3, 4, 5)) * 1e-6
    half = np.dtype(np.float16)
    for each in (values, values.T, values[:, ::2], values[:0], values[0, 0, 0]):
        assert np.array_equal(rounded(np.asarray(each), half), each.astype(half))
    whole = np.arange(10)
    assert np.array_equal(rounded(whole, np.dtype(np.int8)), whole.astype(np.int8))


def test_a_number_that_is_rounded_the_other_way_is_seen() -> None:
    """The comparison above can fail."""
    tie = np.array([2.5 * 2.0**-24, 3.5 * 2.0**-24])
    assert _bits(rounded(tie, np.dtype(np.float16))).tolist() == [2, 4]
