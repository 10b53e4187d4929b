"""Measured times stand beside estimates, and only where something was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wpk.engine.measurement import (
    GENERATED,
    Contestant,
    EngineMeasurement,
    EngineVariant,
    Measurement,
    Tally,
)
from wpk.engine.plan import Plan, PlanBundle
from wpk.report.gather import gather
from wpk.report.html import html_page
from wpk.report.markdown import markdown_text
from wpk.report.terminal import summary

CHOSEN = Contestant("conv_mma", "1", (("stages", 3),), False, 7.125e-6, 7.0e-6, 7.2e-6, 33, True)
MEASURED = Measurement(
    CHOSEN,
    (),
    "cold",
    (Tally(GENERATED, {"ok": 59, "wrong_result": 5}),),
    0,
    "nothing improved for long",
)


@pytest.fixture
def half(bundle: PlanBundle) -> Plan:
    """The plan with its first step measured."""
    first, *rest = bundle.plan.steps
    first = replace(first, evidence=replace(first.evidence, measurement=MEASURED))
    return replace(bundle.plan, steps=(first, *rest))


def test_a_measured_operator_shows_median_and_noise(half: Plan) -> None:
    count = len(half.steps)
    for text in (summary(half), markdown_text(gather(half)), html_page(gather(half))):
        assert "7.12 ±1.4%" in text
        assert f"1 of {count} operators, each alone, cold" in text
    assert "64 candidates were tried, of which 5 failed" in html_page(gather(half))


@pytest.mark.parametrize("chosen", ["mixed", "models"])
def test_the_whole_engine_stands_beside_the_others(bundle: PlanBundle, chosen: str) -> None:
    mixed = EngineVariant("mixed", 1e-4, 0.99e-4, 1.01e-4, 0, 3)
    measurement = EngineMeasurement(
        (EngineVariant("models", 1.1e-4, 1e-4, 1.2e-4, 0, 3), mixed), chosen
    )
    plan = replace(bundle.plan, measurement=measurement)
    for text in (summary(plan), markdown_text(gather(plan)), html_page(gather(plan))):
        assert "100.00 µs" in text
        assert f"{chosen} was chosen" in text


def test_a_plan_that_was_not_measured_claims_nothing(bundle: PlanBundle) -> None:
    assert "measured µs" not in summary(bundle.plan)
    assert "±" not in markdown_text(gather(bundle.plan))
    assert "Measured" not in html_page(gather(bundle.plan))
