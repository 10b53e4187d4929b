"""What outputs of whole models may differ by."""

import pytest

from wpk.checks.limits import BLIND, LIMITS, ErrorLimit, OutputDistance, allowed
from wpk.dtypes import ASKED, Precision


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, ErrorLimit(1e-5, 5e-5)),
        (OutputDistance(0.0, 0.0), ErrorLimit(1e-5, 5e-5)),
        (OutputDistance(0.4e-5, 2.4e-5), ErrorLimit(1e-5, 5e-5)),
        (OutputDistance(1e-3, 2e-5), ErrorLimit(2e-3, 5e-5)),
        (OutputDistance(1e-6, 3e-2), ErrorLimit(1e-5, 6e-2)),
        (OutputDistance(1e-3, float("inf")), ErrorLimit(1e-5, 5e-5)),  # that says nothing
        (OutputDistance(1e-3, float("nan")), ErrorLimit(1e-5, 5e-5)),
    ],
)
def test_twice_what_rounding_in_memory_does_is_allowed(
    error: OutputDistance | None, expected: ErrorLimit
) -> None:
    assert allowed(Precision.FP32, error) == expected


@pytest.mark.parametrize("precision", list(ASKED))
def test_limits_are_those_of_the_precision_and_see(precision: Precision) -> None:
    assert allowed(precision, None) == LIMITS[precision]
    assert LIMITS[precision].median < BLIND.median
    assert LIMITS[precision].worst < BLIND.worst


def test_a_comparison_is_blind_as_documented() -> None:
    """Unrelated outputs pass a tenth with 6 % for an element, half of the RMS with 28 %."""
    assert (BLIND.median, BLIND.worst) == (0.1, 0.5)
