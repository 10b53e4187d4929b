"""Whole outputs judged: ok, failed, and where the comparison can say nothing."""

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from wpk.checks.limits import BLIND, LIMITS, ROUNDING_FACTOR, ErrorLimit, OutputDistance, allowed
from wpk.checks.model_check import check_outputs, output_error
from wpk.checks.scope import Tolerance
from wpk.dtypes import ASKED, Precision
from wpk.errors import LaunchError
from wpk.plan.plan import Check, Outcome

Arrays = Mapping[str, NDArray[np.generic]]
RIGHT = np.random.default_rng(0).standard_normal(1000).astype(np.float32)


def judged(y: object, right: object = RIGHT, **how: object) -> Check:
    """The check of an engine that gives ``y`` for ``right``."""
    outputs = {"y": np.asarray(y)}
    precision = how.pop("precision", Precision.FP32)
    return check_outputs(
        lambda _: outputs,
        {"y": np.asarray(right)},
        {},
        precision,
        "test",
        **how,  # type: ignore[arg-type]
    )


def rounding(median: float, worst: float) -> dict[str, OutputDistance]:
    return {"y": OutputDistance(median, worst)}


class Closer:
    """Says of everything that it is undecided, and remembers of what."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, object]] = []

    def floats(
        self, name: str, actual: object, right: object, limit: ErrorLimit
    ) -> tuple[Outcome, str]:
        self.asked.append((name, limit))
        return Outcome.INCONCLUSIVE, "looked at"

    def integers(self, name: str, actual: object, right: object) -> tuple[Outcome, str]:
        return self.floats(name, actual, right, LIMITS[Precision.BF16])


@pytest.mark.parametrize(
    ("right", "y", "median", "worst"),
    [
        ([3.0, 4, 0, 0], [3.25, 3.5, 0.75, -1], 0.25, 0.4),  # an RMS of 2.5
        ([0.5], [0.75], 0.5, 0.5),
        (
            [3.0, np.inf, 4, -np.inf, 0, np.nan, 0],
            [3.25, np.inf, 3.5, -np.inf, 0, np.nan, 1],
            0,
            0.4,
        ),
        ([3.0, 4, 0, 0, np.inf], [3.25, 3.5, 0.75, -1, 7], 0.3, np.inf),
        ([3.0, 4, 0, 0, np.inf], [3.25, 3.5, 0.75, -1, -np.inf], 0.3, np.inf),
        ([3.0, 4, 0, 0, np.nan], [3.25, 3.5, 0.75, -1, np.inf], 0.3, np.inf),
        ([3.0, 4, 0, 0, 0], [3, 4, 0, np.nan, 0], 0, np.inf),
        ([np.inf, np.nan], [np.inf, np.nan], 0, 0),
        ([0.0, 0, 0], [0, 0, 0], 0, 0),
        ([0.0, 0, 0], [0, 0, 0.5], 0, np.inf),
        ([1.0, 2], [[1.0, 2]], np.inf, np.inf),
        ([], [], 0, 0),
        ([[]], [], np.inf, np.inf),
    ],
)
def test_errors_are_relative_to_the_root_mean_square_of_what_is_finite(
    right: object, y: object, median: float, worst: float
) -> None:
    found = output_error(np.array(y), np.array(right))
    assert found == OutputDistance(pytest.approx(median), pytest.approx(worst))


def test_an_error_as_large_as_the_limit_is_allowed() -> None:
    limit, right = LIMITS[Precision.FP32], np.array([2.0, 0, 0, 0])  # an RMS of 1
    for median, worst in ((limit.median, limit.median), (0.0, limit.worst)):
        assert judged([2, median, median, worst], right).outcome is Outcome.OK
        assert judged([2, median, median, worst * 1.001], right).outcome is (
            Outcome.OK if worst < limit.worst else Outcome.FAILED
        )
    more = limit.median * 1.001
    assert judged([2, more, more, more], right).outcome is Outcome.FAILED


def test_a_closer_look_decides_what_the_limits_refuse_or_cannot_see() -> None:
    def asked(y: object, right: object = RIGHT, **how: object) -> list[tuple[str, object]]:
        closer = Closer()
        check = judged(y, right, closer=closer, **how)
        assert (check.outcome is Outcome.INCONCLUSIVE) == ("looked at" in check.detail)
        assert bool(closer.asked) == ("looked at" in check.detail)
        return closer.asked

    fp32 = [("y", LIMITS[Precision.FP32])]
    integers = [("y", LIMITS[Precision.BF16])]
    assert asked(RIGHT) == []
    assert asked(RIGHT * np.float32(1.01)) == fp32
    assert asked(RIGHT, rounded=rounding(0.0, BLIND.worst / ROUNDING_FACTOR)) == fp32
    assert asked(RIGHT, rounded=rounding(0.0, 0.99 * BLIND.worst / ROUNDING_FACTOR)) == []
    assert asked(np.arange(5), np.arange(5)) == []
    assert asked(np.arange(5), np.arange(5)[::-1]) == integers
    assert asked(np.array([True, False]), np.array([True, True])) == integers


@pytest.mark.parametrize(
    ("right", "y"),
    [
        ([1.0, 2, 3, 4], [1, np.inf, 3, 4]),
        ([1.0, 2, np.inf, 4], [1, 2, -np.inf, 4]),
        ([1.0, 2, np.nan, 4], [1.0, 2, 3, 4]),
        ([1.0, np.nan, np.inf, 4], [1, np.nan, np.nan, 4]),
    ],
)
def test_what_is_not_finite_must_be_the_same_unless_a_closer_look_knows_better(
    right: object, y: object
) -> None:
    given = judged(np.array(y), np.array(right), rounded=rounding(1.0, 9.0))
    assert given.outcome is Outcome.FAILED
    assert "finite" in given.detail
    closer = Closer()
    assert judged(np.array(y), np.array(right), closer=closer).outcome is Outcome.INCONCLUSIVE
    assert closer.asked == [("y", LIMITS[Precision.FP32])]


@pytest.mark.parametrize("precision", list(ASKED))
def test_limits_of_a_precision_are_far_from_blind(precision: Precision) -> None:
    limit = LIMITS[precision]
    assert limit.median < BLIND.median / 3
    assert limit.worst < BLIND.worst / 2


@pytest.mark.parametrize("precision", list(ASKED))
def test_what_rounding_alone_changes_widens_the_limits_by_its_factor(precision: Precision) -> None:
    factor, limit = ROUNDING_FACTOR, LIMITS[precision]
    wide = allowed(precision, OutputDistance(limit.median, limit.worst))
    assert wide == ErrorLimit(limit.median * factor, limit.worst * factor)
    assert allowed(precision, OutputDistance(0.0, 0.0)) == limit
    assert allowed(precision, OutputDistance(np.inf, np.inf)) == limit
    assert allowed(precision, None) == limit


def test_a_model_that_amplifies_rounding_is_held_to_its_own() -> None:
    own = rounding(median=1e-2, worst=8e-2)
    for error, outcome in ((1.5e-2, Outcome.OK), (2.5e-2, Outcome.FAILED)):
        right = np.ones(101, np.float32)
        check = judged(right + np.float32(error), right, precision=Precision.FP16, rounded=own)
        assert check.outcome is outcome
    assert judged(RIGHT * np.float32(1.03), precision=Precision.FP16).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "own", [(BLIND.median / 2, 0.0), (0.0, BLIND.worst / 2)], ids=["median", "worst"]
)
@pytest.mark.parametrize("offset", [0.0, 0.3, 30.0])
def test_where_rounding_is_amplified_beyond_sight_nothing_is_said(
    own: tuple[float, float], offset: float
) -> None:
    check = judged(RIGHT + np.float32(offset), precision=Precision.FP16, rounded=rounding(*own))
    assert check.outcome is Outcome.INCONCLUSIVE
    assert "says nothing: the model amplifies rounding" in check.detail


def test_an_unrelated_output_passes_no_limit_that_says_something() -> None:
    rng = np.random.default_rng(1)
    sight = OutputDistance(0.99 * BLIND.median / 2, 0.99 * BLIND.worst / 2)
    passed = 0
    for _ in range(1000):
        right, y = rng.standard_normal((2, 11)).astype(np.float32)
        check = judged(y, right, precision=Precision.FP16, rounded={"y": sight})
        passed += check.outcome is not Outcome.FAILED
    assert passed <= 1  # 2e-5 expected of each


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_should_be_finite_fails_however_far_rounding_is_amplified(wrong: float) -> None:
    y = RIGHT.copy()
    y[3] = wrong
    check = judged(y, rounded=rounding(1.0, 9.0))
    assert check.outcome is Outcome.FAILED
    assert "1 elements are not finite, and should be" in check.detail


def test_other_shapes_and_types_and_missing_outputs_fail() -> None:
    own = rounding(1.0, 9.0)
    assert judged(RIGHT[None], rounded=own).detail == (
        "'y' is float32[1, 1000], expected float32[1000]"
    )
    assert judged(RIGHT.astype(np.float64), rounded=own).outcome is Outcome.FAILED
    gone = check_outputs(lambda _: {}, {"y": RIGHT}, {}, Precision.FP32, "test")
    assert (gone.outcome, gone.detail) == (Outcome.FAILED, "'y' is missing")


def test_an_engine_that_cannot_run_fails() -> None:
    def engine(_: Arrays) -> Arrays:
        raise LaunchError("illegal address", fix="none")

    check = check_outputs(engine, {"y": RIGHT}, {}, Precision.FP32, "test")
    assert (check.outcome, check.detail) == (Outcome.FAILED, "illegal address")


def test_integers_must_be_equal() -> None:
    right = np.arange(10)
    assert judged(right, right).outcome is Outcome.OK
    failed = judged(right + (right == 4), right)
    assert (failed.outcome, failed.detail) == (Outcome.FAILED, "'y' 1 of 10 elements differ")


def test_an_output_that_never_moves_witnesses_nothing() -> None:
    zeros = np.zeros(5, np.float32)
    check = judged(zeros, zeros, unmoved={"y"})
    assert check.outcome is Outcome.INCONCLUSIVE
    assert "says nothing: it should be zero for all inputs tried" in check.detail
    assert "it should be the same for" in judged(RIGHT, unmoved={"y"}).detail
    assert judged(zeros + np.float32(1e-9), zeros, unmoved={"y"}).outcome is Outcome.FAILED


def test_an_output_that_is_mostly_not_finite_witnesses_nothing() -> None:
    right = RIGHT.copy()
    right[:501] = np.nan
    check = judged(right, right)
    assert check.outcome is Outcome.INCONCLUSIVE
    assert "501 of 1000 elements expected are not finite" in check.detail
    right[500] = 0.0
    assert judged(right, right).outcome is Outcome.OK


def test_the_worst_output_decides() -> None:
    right = {"a": RIGHT, "b": RIGHT, "c": RIGHT}

    def outcome(changed: Arrays, unmoved: set[str]) -> Outcome:
        outputs = {**right, **changed}
        check = check_outputs(lambda _: outputs, right, {}, Precision.FP32, "test", unmoved=unmoved)
        return check.outcome

    assert outcome({}, set()) is Outcome.OK
    assert outcome({"a": RIGHT + 1}, {"b", "c"}) is Outcome.FAILED


def test_half_of_the_outputs_must_say_something() -> None:
    right = dict.fromkeys("abcd", RIGHT) | {"x": RIGHT}

    def outcome(unmoved: str) -> Outcome:
        check = check_outputs(
            lambda _: right, right, {"x": RIGHT}, Precision.FP32, "test", unmoved=set(unmoved)
        )
        return check.outcome

    assert [outcome(unmoved) for unmoved in ("", "ab", "abc", "abcd")] == [
        Outcome.OK,
        Outcome.OK,
        Outcome.INCONCLUSIVE,
        Outcome.INCONCLUSIVE,
    ]


def test_a_tolerance_decides_as_allclose_does() -> None:
    right = np.array([1.0, 100.0, 0.0, np.nan], np.float32)
    y = np.array([1.009, 100.9, 0.0009, np.nan], np.float32)
    for rtol, atol in ((1e-2, 1e-3), (1e-2, 1e-4), (5e-3, 1e-3), (0.0, 1.0), (1e-3, 0.0)):
        check = judged(y, right, tolerance=Tolerance(rtol, atol))
        close = np.allclose(y, right, rtol, atol, equal_nan=True)
        assert check.outcome is (Outcome.OK if close else Outcome.FAILED)
        assert f"beyond rtol {rtol:g}, atol {atol:g}" in check.detail
    assert "3 of 4 elements beyond" in judged(y, right, tolerance=Tolerance(1e-9, 0.0)).detail


def test_a_tolerance_is_wider_or_narrower_than_the_limits() -> None:
    y = RIGHT * np.float32(1 + 1e-3)
    assert judged(y).outcome is Outcome.FAILED
    assert judged(y, tolerance=Tolerance(2e-3, 0.0)).outcome is Outcome.OK
    y = RIGHT * np.float32(1 + 5e-7)
    assert judged(y).outcome is Outcome.OK
    assert judged(y, tolerance=Tolerance(1e-8, 0.0)).outcome is Outcome.FAILED


def test_an_error_beside_numbers_whose_squares_overflow_is_seen() -> None:
    right = np.array([1.0, -3e300, 2e300])
    wrong = right * np.array([1.0, 1.01, 1.0])
    assert output_error(right, right).worst == 0.0
    assert 0.01 < output_error(wrong, right).worst < 0.02
