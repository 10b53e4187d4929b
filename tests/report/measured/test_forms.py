"""Measured times stand beside estimates, and only where something was measured."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import pytest
from support.plans.candidates import kernel

from wpk.errors import EngineError
from wpk.plan.fields import decode
from wpk.plan.measurement import (
    GENERATED,
    Contestant,
    EngineMeasurement,
    EngineVariant,
    Measurement,
    Tally,
)
from wpk.plan.plan import Plan, PlanBundle
from wpk.problems.signs import DASH
from wpk.report.blocks import plain_text
from wpk.report.plans.contest import (
    candidate_words,
    contest_sentences,
    roles,
    tally_words,
    time_words,
)
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.formats import json_text
from wpk.report.plans.gather import gather
from wpk.report.plans.html import html_page
from wpk.report.plans.markdown import markdown_text
from wpk.report.plans.measured import curve_name
from wpk.report.plans.terminal import operator_source, summary

CHOSEN = Contestant(kernel("conv_mma", (("stages", 3),)), 7.125e-6, 7.0e-6, 7.2e-6, 33, True)
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
    for text in (plain_text(*summary(half)), markdown_text(gather(half)), html_page(gather(half))):
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
    for text in (plain_text(*summary(plan)), markdown_text(gather(plan)), html_page(gather(plan))):
        assert "100.00 µs" in text
        assert f"{chosen} was chosen" in text


def test_every_form_shows_who_took_part_and_why_it_ended_so(
    measured: PlanBundle, measured_facts: ReportFacts
) -> None:
    markdown = markdown_text(measured_facts).replace("\\", "")
    page = html.unescape(html_page(measured_facts))
    for text in (plain_text(*summary(measured.plan)), markdown, page):
        for operator in measured_facts.operators:
            assert operator.measurement is not None
            assert operator.why in text or operator.why[1:] in text
            for role, each in roles(operator.measurement):
                assert role in text
                assert candidate_words(each) in text
                assert time_words(each) in text
            assert f"{0.9e6 * operator.measurement.median_seconds:.2f}" in text
        for problem in measured_facts.problems:
            assert problem.measurement is not None
            assert tally_words(problem.measurement) in text
            for curve in problem.measurement.curves:
                assert curve_name(curve) in text
            for line in problem.measurement.lookups:
                assert line in text
        assert measured_facts.contest is not None
        for sentence in contest_sentences(measured_facts.contest):
            assert sentence in text
        assert "weakest first: gemm_4" in text
        for name in ("models", "library", "generated", "mixed"):
            assert name in text


def test_json_holds_every_measured_fact(measured_facts: ReportFacts) -> None:
    data = json.loads(json_text(measured_facts))
    del data["report"]
    assert decode(data, ReportFacts, "report") == measured_facts


def test_a_library_step_has_no_launches_registers_or_source(
    measured: PlanBundle, measured_facts: ReportFacts
) -> None:
    (operator,) = (each for each in measured_facts.operators if not each.launches)
    lines = plain_text(*summary(measured.plan)).splitlines()
    line = next(each for each in lines if each.startswith(operator.name))
    assert line.split().count(DASH) == 6  # estimate, registers, shared, runs, source, CPU
    assert operator.launches == ()
    assert measured_facts.library_steps == 1
    assert measured_facts.precision.by_library == (operator.name,)
    assert "cuDNN 9.19.0 chooses its kernels itself" in html_page(measured_facts)
    with pytest.raises(EngineError, match="has no generated source"):
        operator_source(measured, operator.name)


def test_shares_are_of_measured_times(measured_facts: ReportFacts) -> None:
    total = sum(each.time_us for each in measured_facts.operators)
    for each in measured_facts.operators:
        assert each.measurement is not None
        assert each.share == each.measurement.median_seconds * 1e6 / total


def test_the_page_is_whole_and_its_links_lead_somewhere(measured_facts: ReportFacts) -> None:
    page = html_page(measured_facts)
    for name in ("section", "table", "svg", "article", "tr", "td", "g", "p", "span"):
        assert len(re.findall(rf"<{name}[ >]", page)) == page.count(f"</{name}>")
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(set(ids)) == len(ids)
    assert {link[1:] for link in re.findall(r' href="(#[^"]+)"', page)} <= set(ids)
    assert "Times called measured were taken on the GPU" in page
    assert "No time here is measured" not in page


def test_markdown_tables_keep_their_columns(measured_facts: ReportFacts) -> None:
    for block in markdown_text(measured_facts).split("\n\n"):
        if block.startswith("| "):
            cells = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(cells) == 1


def test_hostile_words_of_a_measurement_stay_text(measured: PlanBundle) -> None:
    bad = "</p><script>alert(1)</script>|\x1b[2J"
    first, *rest = measured.plan.steps
    found = first.evidence.measurement
    assert found is not None
    hostile = replace(
        found,
        stop=bad,
        lookups=(bad,),
        refusals=(bad,),
        curves=(replace(found.curves[0], maker=bad, searcher=bad),),
        tallies=(Tally(bad, {bad: 1}),),
        chosen=replace(found.chosen, candidate=kernel(bad, ((bad, 1),), bad)),
    )
    step = replace(first, evidence=replace(first.evidence, measurement=hostile))
    plan = replace(measured.plan, steps=(step, *rest))
    facts = gather(plan)
    assert html_page(facts).count("<script>") == 1
    assert "\x1b" not in html_page(facts) + plain_text(*summary(plan)) + markdown_text(facts)


def test_a_plan_that_was_not_measured_claims_nothing(bundle: PlanBundle) -> None:
    assert "measured µs" not in plain_text(*summary(bundle.plan))
    assert "±" not in markdown_text(gather(bundle.plan))
    assert "Measured" not in html_page(gather(bundle.plan))
