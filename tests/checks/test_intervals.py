"""The intervals of accepted numbers are what the comparison accepts, pattern by pattern."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from wpk.checks.compare import compare, units
from wpk.checks.intervals import accepted, ordered

HALF, BFLOAT, SINGLE = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
SHORT = [HALF, BFLOAT, np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)]
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
NAN, INF = float("nan"), float("inf")


def patterns(dtype: np.dtype) -> np.ndarray:
    """All of a type, as signed integers."""
    size = dtype.itemsize
    return np.arange(1 << (8 * size), dtype=f"u{size}").view(f"i{size}")


def ends(dtype: np.dtype) -> dict[str, float]:
    info = ml_dtypes.finfo(dtype)
    return {
        "largest": float(info.max),
        "last step": float(info.max) - float(np.nextafter(info.max, dtype.type(0))),
        "normal": float(info.smallest_normal),
        "subnormal": float(info.smallest_subnormal),
    }


def adversarial(dtype: np.dtype) -> list[tuple[float, float]]:
    """Expectations with tolerances, where it is hard to say what is accepted."""
    end = ends(dtype)
    largest, step, tiny = end["largest"], end["last step"], end["subnormal"]
    near = [0.0, 1.0, 1.0 + 2**-30, 1 / 3, tiny, tiny / 2, 1.5 * tiny, end["normal"]]
    far = [largest, largest - step, largest - step / 3, largest + step / 2, largest + step]
    far += [1.07 * largest, 3 * largest, 1e300, INF]
    allowed = [0.0, 1e-320, tiny / 2, tiny, 3.3 * tiny, 1e-3, 0.1, 1.0, step / 2, step, 5 * step]
    allowed += [largest, 2 * largest, 1e300, INF, NAN]
    values = [NAN, -0.0, *near, *far, *(-each for each in (*near[1:], *far))]
    return [(value, tolerance) for value in values for tolerance in allowed]


def accepted_patterns(value: float, tolerance: float, dtype: np.dtype) -> np.ndarray:
    y = patterns(dtype).view(dtype)
    return units(y, np.full(y.shape, value), np.full(y.shape, tolerance)) <= 1.0


def rounded_to_fit(y: np.generic, value: float, tolerance: float) -> bool:
    """Whether a number is accepted only because its distance was rounded to the tolerance."""
    return abs(Fraction(float(y)) - Fraction(value)) > Fraction(tolerance)


def inside(value: float, tolerance: float, dtype: np.dtype) -> np.ndarray | None:
    found = accepted(np.array([value]), np.array([tolerance]), dtype)
    if found is None:
        return None
    low, high = (ordered(end.view(f"i{dtype.itemsize}")) for end in found)
    words = ordered(patterns(dtype))
    return (low <= words) & (words <= high)


@pytest.mark.parametrize("dtype", SHORT, ids=str)
def test_every_pattern_is_judged_as_by_the_comparison(dtype: np.dtype) -> None:
    empty, words = 0, patterns(dtype)
    for value, tolerance in adversarial(dtype):
        right, quick = accepted_patterns(value, tolerance, dtype), inside(value, tolerance, dtype)
        if quick is None:
            empty += 1
            assert not right.any(), (value, tolerance)
            continue
        assert not (quick & ~right).any(), (value, tolerance, words[quick & ~right])
        missed = right & ~quick
        if np.isnan(value):  # negative NaNs are left to the comparison
            missed &= words >= 0
        for y in words[missed].view(dtype):
            assert rounded_to_fit(y, value, tolerance), (value, tolerance, y)
    assert empty > 10


@pytest.mark.parametrize("dtype", SHORT, ids=str)
def test_random_intervals_are_what_the_comparison_accepts(dtype: np.dtype) -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        value = float(rng.normal() * 10.0 ** rng.integers(-8, 6))
        tolerance = abs(value) * 10.0 ** rng.uniform(-6, 1)
        right, quick = accepted_patterns(value, tolerance, dtype), inside(value, tolerance, dtype)
        assert not right.any() if quick is None else np.array_equal(quick, right)


def test_the_ends_in_fp32_are_accepted_and_their_neighbours_are_not() -> None:
    pairs = np.array([p for p in adversarial(SINGLE) if np.isfinite(p[0])])
    seen = 0
    for value, tolerance in pairs:
        found = accepted(np.array([value]), np.array([tolerance]), SINGLE)
        if found is None:
            continue
        low, high = (ordered(end.view(np.int32)) for end in found)
        words = np.concatenate([low - 1, low, high, high + 1])
        y = ordered(words.astype(np.int32)).view(SINGLE)
        fits = units(y, np.full(4, value), np.full(4, tolerance)) <= 1.0
        assert fits[1:3].all(), (value, tolerance, y)
        for place in (0, 3):
            assert not fits[place] or rounded_to_fit(y[place], value, tolerance), (value, y)
        seen += 1
    assert seen > 100


def test_the_order_is_that_of_the_numbers() -> None:
    finite = ALL[np.isfinite(ALL.view(HALF))]
    sorted_words = finite[np.argsort(ordered(finite))].view(HALF).astype(np.float64)
    assert (np.diff(sorted_words) >= 0).all()
    assert np.array_equal(ordered(ordered(ALL)), ALL)
    assert np.unique(ordered(ALL)).size == ALL.size


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.bool_])
def test_what_is_exact_must_be_equal(dtype: type) -> None:
    expected = np.array([0, 1, 1])
    found = accepted(expected, None, np.dtype(dtype))
    assert found is not None
    assert all(np.array_equal(end, expected) for end in found)


def test_nothing_is_accepted_where_the_type_lacks_the_number() -> None:
    assert accepted(np.array([300]), None, np.dtype(np.int8)) is None
    assert accepted(np.array([1.0, 1 / 3]), np.zeros(2), HALF) is None
    assert accepted(np.array([NAN]), None, HALF) is None
    assert accepted(np.array([1.0, 3.39617752923046e38]), np.array([0.5, NAN]), BFLOAT) is None


@pytest.mark.parametrize(
    ("dtype", "most"), [(np.int32, 2**31 - 1), (np.int64, 2**63 - 1024), (np.uint32, 2**32 - 1)]
)
def test_large_integers_stay_within_their_type(dtype: type, most: int) -> None:
    expected = np.array([most, most - 2048, 9, 2**31 - 1], dtype)
    found = accepted(expected, np.array([5.0, 1024.0, INF, 0.0]), np.dtype(dtype))
    assert found is not None
    low, high = (end.tolist() for end in found)
    least = max(int(np.iinfo(dtype).min), -(2**63))
    assert high == [most, most - 1024, most, 2**31 - 1]
    assert low[1:] == [most - 3072, least, 2**31 - 1]
    assert low[0] <= most


@pytest.mark.parametrize("place", [0, 65535, 65536, 69999])
@pytest.mark.parametrize(
    ("tolerance", "dtype"), [(None, HALF), (0.0, HALF), (0.0, np.dtype(np.int16))]
)
def test_one_of_many_elements_that_the_type_lacks(
    place: int, tolerance: float | None, dtype: np.dtype
) -> None:
    expected = np.arange(70000) % 1000
    allowed = None if tolerance is None else np.full(expected.shape, tolerance)
    found = accepted(
        expected.reshape(2, -1), None if allowed is None else allowed.reshape(2, -1), dtype
    )
    assert found is not None
    assert all(np.array_equal(end.reshape(-1), expected) for end in found)
    expected[place] = 4097 if dtype == HALF else 100001
    assert accepted(expected, allowed, dtype) is None


def test_each_element_has_its_own_interval() -> None:
    expected = np.array([0.0, 1.0, INF, -4.0, 70000.0])
    tolerance = np.array([0.0, 0.25, 0.0, 2.0, 1.0])
    found = accepted(expected, tolerance, HALF)
    assert found is not None
    low, high = found
    assert np.signbit(low[0])
    assert not np.signbit(high[0])
    assert low.tolist()[1:] == [0.75, INF, -6.0, INF]
    assert high.tolist()[1:] == [1.25, INF, -2.0, INF]


def test_a_tolerance_is_broadcast() -> None:
    found = accepted(np.ones((2, 3)), np.array(0.5), HALF)
    assert found is not None
    assert found[0].shape == (2, 3)
    assert (found[0] == 0.5).all()
    assert (found[1] == 1.5).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.bool_])
@pytest.mark.parametrize("expected_type", [np.int64, np.float64])
def test_every_integer_is_judged_as_by_the_comparison(dtype: type, expected_type: type) -> None:
    least, most = (0, 1) if dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = [v for v in (-128, -7, -1, 0, 1, 5, 126, 127, 254, 255) if least <= v <= most]
    pairs = [(v, t) for v in values for t in (0.0, 0.3, 1.0, 1.5, 2.0, 7.0, 1000.0, INF)]
    expected = np.array([value for value, _ in pairs]).astype(expected_type)
    tolerance = np.array([allowed for _, allowed in pairs])
    found = accepted(expected, tolerance, np.dtype(dtype))
    assert found is not None
    for value, allowed, low, high in zip(expected, tolerance, *map(np.int64, found), strict=True):
        for number in {low - 1, low, high, high + 1} & set(range(least, most + 1)):
            right = compare(np.array([number]).astype(dtype), value[None], allowed[None]).passed
            assert right is bool(low <= number <= high), (value, allowed, number)


def test_an_integer_that_its_type_lacks_is_accepted_within_a_tolerance_alone() -> None:
    expected, int8 = np.array([5, 300]), np.dtype(np.int8)
    assert accepted(expected, np.zeros(2), int8) is None
    found = accepted(expected, np.array([0.0, 200.0]), int8)
    assert found is not None
    assert [end.tolist() for end in found] == [[5, 100], [5, 127]]


def test_many_of_what_is_no_number_are_accepted_and_no_number_is() -> None:
    found = accepted(np.array([1.0, NAN, 2.0]), np.array([0.5, 0.5, 0.0]), SINGLE)
    assert found is not None
    low, high = (end.view(np.int32) for end in found)
    assert (low[1], high[1]) == (0x7F800001, 0x7FFFFFFF)
    assert found[0][[0, 2]].tolist() == [0.5, 2.0]
    assert found[1][[0, 2]].tolist() == [1.5, 2.0]
