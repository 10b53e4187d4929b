"""When a form that was chosen counts as no slower than what it is compared with."""

from __future__ import annotations

from typing import Any

import pytest
from rows.base import RowError
from rows.forms import NETWORKS, cases, judge, judge_rows
from zoo.catalogue import zoo

from wpk.plan.forms import FormOutcome, FormSearch, TriedForm
from wpk.plan.measurement import EngineMeasurement, EngineVariant

TRIED = TriedForm("a:1", "joins", 2, FormOutcome.TAKEN, "", 2e-6, 2e-6, 3e-6, 1e-6)
FORMS = FormSearch((TRIED,), 5, ("a:1",), ("a:1",), measured=True)


def measured(chosen: str, **microseconds: float) -> EngineMeasurement:
    variants = [
        EngineVariant(n, 1e-6 * t, 0.995e-6 * t, 1.005e-6 * t, 1, 1)
        for n, t in microseconds.items()
    ]
    return EngineMeasurement(tuple(variants), chosen)


def test_every_network_is_of_the_zoo_and_there_are_enough() -> None:
    assert set(NETWORKS) <= set(zoo())
    assert len(NETWORKS) >= 8
    assert {case.batch for case in cases()} == {1, 32}


def test_the_found_form_is_held_to_the_fastest_engine_of_the_usual_one() -> None:
    outcome = judge(measured("found", models=120.0, mixed=110.0, unfused=150.0, found=100.0), FORMS)
    assert outcome.passed
    assert outcome.figures["usual"] == "mixed"
    assert outcome.figures["speedup"]["median"] == pytest.approx(1.1)
    assert outcome.figures["partitions"] == 5
    assert "5 partitions" in outcome.summary


@pytest.mark.parametrize("name", ["unfused", "library"])
def test_an_unfused_or_all_library_engine_that_is_faster_does_not_pass(name: str) -> None:
    outcome = judge(measured("mixed", mixed=100.0, **{name: 90.0}), FORMS)
    assert not outcome.passed
    assert outcome.figures["slower_than"] == [name]


def test_a_form_that_is_slower_than_the_usual_one_does_not_pass() -> None:
    assert not judge(measured("found", mixed=98.0, found=100.0), FORMS).passed


def test_what_did_not_compete_is_no_row() -> None:
    with pytest.raises(RowError, match="did not compete"):
        judge(measured("mixed", mixed=98.0), None)


def test_all_rows_are_held_to_the_mean_and_the_least() -> None:
    def record(median: float) -> dict[str, Any]:
        ratio = {"median": median, "low": median, "high": median}
        return {"figures": {"speedup": ratio, "slower_than": [], "partitions": 3}}

    records: dict[str, Any] = {f"forms.{case}": record(1.06) for case in cases()}
    assert judge_rows(records).passed
    name = f"forms.{cases()[0]}"
    assert not judge_rows(records | {name: record(0.9)}).passed
    with pytest.raises(RowError, match="not measured yet"):
        judge_rows({})
