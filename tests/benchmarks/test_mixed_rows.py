"""When a chosen engine counts as no slower than the library's."""

from __future__ import annotations

import pytest
from rows.base import RowError
from rows.mixed import judge

from wpk.plan.measurement import EngineMeasurement, EngineVariant


def variant(name: str, median: float, noise: float) -> EngineVariant:
    return EngineVariant(name, median, (1 - noise) * median, (1 + noise) * median, 1, 1)


@pytest.mark.parametrize(
    ("mixed", "library", "passed"),
    [(90e-6, 100e-6, True), (101e-6, 100e-6, True), (103e-6, 100e-6, False)],
)
def test_slower_than_the_library_beyond_the_noise_does_not_pass(
    mixed: float, library: float, *, passed: bool
) -> None:
    variants = (variant("library", library, 0.01), variant("mixed", mixed, 0.01))
    outcome = judge(EngineMeasurement(variants, "mixed", ("conv_3",)))
    assert outcome.passed is passed
    assert outcome.figures["speedup"]["median"] == pytest.approx(library / mixed)
    assert outcome.figures["undone"] == ["conv_3"]
    assert "library 100.0 µs" in outcome.summary


def test_without_the_librarys_engine_there_is_nothing_to_compare() -> None:
    alone = EngineMeasurement((variant("generated", 1e-4, 0.01),), "generated")
    for measured in (None, alone):
        with pytest.raises(RowError, match="no engine of a library's operators"):
            judge(measured)
