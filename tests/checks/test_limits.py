"""What outputs of whole models may differ by."""

import pytest

from wpk.checks.limits import BLIND, LIMITS, Limit, OutputError, allowed
from wpk.dtypes import Precision


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, Limit(1e-5, 5e-5)),
        (OutputError(0.0, 0.0), Limit(1e-5, 5e-5)),
        (OutputError(0.4e-5, 2.4e-5), Limit(1e-5, 5e-5)),
        (OutputError(1e-3, 2e-5), Limit(2e-3, 5e-5)),
        (OutputError(1e-6, 3e-2), Limit(1e-5, 6e-2)),
        (OutputError(1e-3, float("inf")), Limit(1e-5, 5e-5)),  # that says nothing
        (OutputError(1e-3, float("nan")), Limit(1e-5, 5e-5)),
    ],
)
def test_twice_what_rounding_in_memory_does_is_allowed(
    error: OutputError | None, expected: Limit
) -> None:
    assert allowed(Precision.FP32, error) == expected


@pytest.mark.parametrize("precision", list(Precision))
def test_limits_are_those_of_the_precision_and_see(precision: Precision) -> None:
    assert allowed(precision, None) == LIMITS[precision]
    assert LIMITS[precision].median < BLIND.median
    assert LIMITS[precision].worst < BLIND.worst


def test_a_comparison_is_blind_as_documented() -> None:
    """Unrelated outputs pass a tenth with 6 % for an element, half of the RMS with 28 %."""
    assert (BLIND.median, BLIND.worst) == (0.1, 0.5)
