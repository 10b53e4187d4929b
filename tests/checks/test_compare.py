"""Elementwise comparison, and the error of whole outputs."""

import ml_dtypes
import numpy as np
import pytest

from wpk import blocks
from wpk.checks.compare import Comparison, compare
from wpk.checks.limits import LIMITS
from wpk.checks.model_check import check_outputs, output_error
from wpk.dtypes import ASKED, Precision
from wpk.plan.plan import Outcome

TOLERANCE = np.full(3, 0.1)


def passes(actual: list[float], expected: list[float], dtype: object = np.float32) -> bool:
    return compare(np.array(actual).astype(dtype), np.array(expected), TOLERANCE).passed


def test_within_the_tolerance_passes() -> None:
    assert passes([1.05, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert not passes([1.15, 2.0, 3.0], [1.0, 2.0, 3.0])


def test_names_the_worst_element() -> None:
    found = compare(
        np.array([[1.0, 9.0]], np.float32), np.array([[1.0, 2.0]]), np.full((1, 2), 0.1)
    )
    assert (found.wrong, found.total) == (1, 2)
    assert found.example == "[0, 1] is 9.0, expected 2.0"


@pytest.mark.parametrize("place", [0, 5, 17, 99])
def test_the_worst_of_all_blocks_is_named(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 8)
    expected = np.arange(100.0)
    actual = expected + 0.5
    actual[place] -= 0.75
    actual[50] = expected[50] + 0.25
    found = compare(actual, expected, np.full(100, 0.125))
    assert (found.wrong, found.total, found.worst) == (100, 100, 4.0)
    actual[place] = expected[place] - 2
    found = compare(actual, expected, np.full(100, 0.125))
    assert (found.worst, found.example) == (16.0, f"[{place}] is {place - 2.0}, expected {place}.0")


def test_nothing_is_right() -> None:
    empty = np.zeros((2, 0), np.float32)
    assert compare(empty, empty, None) == Comparison(0, 0, 0.0, "")


@pytest.mark.parametrize(
    ("actual", "expected", "right"),
    [
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (-np.inf, -np.inf, True),
        (-np.inf, np.inf, False),
        (np.nan, 1.0, False),
        (np.inf, 1.0, False),
        (1.0, np.nan, False),
        (1.0, np.inf, False),
    ],
)
def test_what_is_not_finite_must_be_so_in_both(actual: float, expected: float, right: bool) -> None:
    assert passes([actual, 0, 0], [expected, 0, 0]) is right


def test_overflow_to_infinity_fits_a_value_beyond_the_type() -> None:
    assert passes([np.inf, 0, 0], [70000.0, 0, 0], np.float16)
    assert not passes([-np.inf, 0, 0], [70000.0, 0, 0], np.float16)
    assert not passes([np.inf, 0, 0], [60000.0, 0, 0], np.float16)
    assert passes([60000.0, 0, 0], [60000.0, 0, 0], np.float16)
    near = np.array([65000.0]), np.array([600.0])
    assert compare(np.array([np.inf], np.float16), *near).passed  # 65600 rounds to it
    assert compare(np.array([-np.inf], np.float16), -near[0], near[1]).passed
    assert not compare(np.array([np.inf], np.float16), near[0], np.array([500.0])).passed


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_infinity_fits_where_the_tolerance_reaches_beyond_the_type(sign: float) -> None:
    """65504 is the largest number of fp16, and from 65520 on all are rounded to infinity."""
    written, expected = np.array([sign * np.inf], np.float16), np.array([sign * 65500.0])
    assert compare(written, expected, np.array([21.0])).passed
    assert not compare(written, expected, np.array([19.0])).passed


def test_bf16_is_compared_as_numbers() -> None:
    assert passes([1.0, 2.0, 3.0], [1.0, 2.0, 3.05], ml_dtypes.bfloat16)


def test_integers_must_be_equal() -> None:
    assert compare(np.array([1, 2]), np.array([1, 2]), None).passed
    assert compare(np.array([1, 2]), np.array([1, 3]), None).wrong == 1


def test_an_integer_may_differ_where_it_is_undecided() -> None:
    big = 2**53
    right, allowed = np.array([big, big, 4, 4]), np.array([0.0, 1.0, 1.0, np.inf])
    assert compare(right + np.array([0, 0, 1, 999]), right, allowed).passed
    assert compare(right + np.array([1, 0, 2, 0]), right, allowed).wrong == 2


def test_a_boolean_may_be_either_where_it_is_undecided() -> None:
    right, allowed = np.array([True, False, True]), np.array([1.0, 1.0, 0.0])
    assert compare(~right, right, allowed).wrong == 1
    assert compare(np.array([False, True, True]), right, allowed).passed


def test_a_byte_that_is_neither_0_nor_1_is_no_boolean() -> None:
    written, right = np.array([0, 1, 2], np.uint8).view(np.bool_), np.array([False, True, True])
    assert compare(written, right, None).wrong == 1
    assert compare(written, right, np.ones(3)).wrong == 1
    assert compare(written[:2], right[:2], None).passed


@pytest.mark.parametrize(
    ("values", "tolerance"),
    [
        (np.array([1.0, np.nan, np.inf, -np.inf], np.float32), np.full(4, 0.5)),
        (np.array([1.0, -2.0], np.float32), np.zeros(2)),
        (np.array([3, 2**60]), np.array([0.0, 1.0])),
        (np.array([3, 4]), None),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3))),
        (np.zeros(0, np.int64), None),
    ],
)
def test_nothing_is_wrong_about_what_is_expected(
    values: np.ndarray, tolerance: np.ndarray | None
) -> None:
    assert compare(values, values, tolerance) == Comparison(0, values.size, 0.0, "")


def test_the_worst_of_many_elements_is_named_wherever_it_lies() -> None:
    """More of them than are compared at a time."""
    shape = (3, 70000)
    for place in [(0, 7), (1, 3), (2, 69999)]:
        written = np.zeros(shape, np.float32)
        written[0, 5] = written[1, 69000] = written[2, 60000] = 0.25
        written[place] = -0.5
        found = compare(written, np.zeros(shape), np.full(shape, 0.125))
        assert (found.wrong, found.total, found.worst) == (4, 210000, 4.0)
        assert found.example == f"[{place[0]}, {place[1]}] is -0.5, expected 0.0"


def test_errors_are_relative_to_the_rms() -> None:
    expected = np.array([3.0, -4.0, 0.0, 0.0, 0.0])
    rms = np.sqrt(25 / 5)
    error = output_error(expected + np.array([0.1, 0, 0, 0.2, 0]), expected)
    assert error.worst == pytest.approx(0.2 / rms)
    assert error.median == 0.0


def test_a_missing_nan_is_infinitely_wrong() -> None:
    assert output_error(np.array([0.0, 1.0]), np.array([np.nan, 1.0])).worst == np.inf
    assert output_error(np.array([np.nan, 1.0]), np.array([np.nan, 1.0])).worst == 0.0


def test_an_output_of_zeros_must_be_zero() -> None:
    assert output_error(np.zeros(3), np.zeros(3)).worst == 0.0
    assert output_error(np.full(3, 1e-9), np.zeros(3)).worst == np.inf


def test_another_shape_is_infinitely_wrong() -> None:
    assert output_error(np.zeros((2, 1)), np.zeros((1, 2))).worst == np.inf


def test_whole_engines_are_held_to_what_is_documented() -> None:
    found = {precision: (each.median, each.worst) for precision, each in LIMITS.items()}
    assert found == {
        Precision.FP32: (1e-5, 5e-5),
        Precision.TF32: (5e-3, 4e-2),
        Precision.FP16: (5e-3, 4e-2),
        Precision.BF16: (3e-2, 2e-1),
        Precision.FP64: (1e-5 * 2.0**-29, 5e-5 * 2.0**-29),
    }


@pytest.mark.parametrize("precision", list(ASKED))
def test_a_whole_engine_fails_beyond_its_limit(precision: Precision) -> None:
    right = np.ones(101, np.float32)

    def engine(offset: float, count: int) -> bool:
        y = right.copy()
        y[:count] += offset
        check = check_outputs(lambda _: {"y": y}, {"y": right}, {}, precision, "test")
        return check.outcome is Outcome.OK

    limit = LIMITS[precision]
    assert engine(limit.worst * 0.9, 1)
    assert not engine(limit.worst * 1.1, 1)
    assert engine(limit.median * 0.9, 101)
    assert not engine(limit.median * 1.1, 101)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_numbers_of_eight_bits_must_be_equal_and_nan_is_nan(dtype: type) -> None:
    expected = np.array([1.0, np.nan, -448.0, 0.0], dtype)
    assert compare(expected.copy(), expected, None).passed
    wrong = np.array([1.125 if dtype is ml_dtypes.float8_e4m3fn else 1.25, 0.0, np.nan, 0.0], dtype)
    assert compare(wrong, expected, None).wrong == 3
    assert compare(wrong, expected, np.array([0.25, 0.0, 0.0, 0.0])).wrong == 2
