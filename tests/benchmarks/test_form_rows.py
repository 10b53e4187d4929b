"""When a form that was chosen counts as no slower than what it is compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rows.base import RowError
from rows.forms import LEAST_NETWORKS, judge
from rows.plan_forms import form_figures
from rows.zoo import cases

from wpk.dtypes import Precision
from wpk.plan.forms import Begun, FormOutcome, FormSearch, TriedForm
from wpk.plan.measurement import EngineMeasurement, EngineVariant

TRIED = TriedForm("a:1", "joins", 2, FormOutcome.TAKEN, "", 2e-6, 2e-6, 3e-6, 1e-6)
FORMS = FormSearch((TRIED,), 5, ("a:1",), ("a:1",), measured=True)


def measured(chosen: str, **microseconds: float) -> EngineMeasurement:
    variants = [
        EngineVariant(n, 1e-6 * t, 0.995e-6 * t, 1.005e-6 * t, 1, 1)
        for n, t in microseconds.items()
    ]
    return EngineMeasurement(tuple(variants), chosen)


def figures(chosen: str, **microseconds: float) -> dict[str, Any]:
    found: dict[str, Any] = form_figures(measured(chosen, **microseconds), FORMS)["forms"]
    return found


def test_the_found_form_is_held_to_the_fastest_engine_of_the_usual_one() -> None:
    found = figures("found", models=120.0, mixed=110.0, unfused=150.0, found=100.0)
    assert found["usual"] == "mixed"
    assert found["speedup"]["median"] == pytest.approx(1.1)
    assert found["partitions"] == 5
    assert not found["slower_than"]


def test_where_tuning_began_with_another_form_the_passes_own_is_what_it_is_held_to() -> None:
    found = figures("mixed", models=110.0, mixed=100.0, passes=130.0)
    assert found["usual"] == "passes"
    assert found["speedup"]["median"] == pytest.approx(1.3)
    begun = replace(FORMS, begun=Begun(("a:1",), 3, 2e-6, 1e-6))
    told = form_figures(measured("mixed", mixed=98.0), begun)["forms"]
    assert told["begun"]["looked_at"] == 3
    assert found["begun"] is None


@pytest.mark.parametrize("name", ["unfused", "library"])
def test_an_unfused_or_all_library_engine_that_is_faster_is_told(name: str) -> None:
    assert figures("mixed", mixed=100.0, **{name: 90.0})["slower_than"] == [name]


def test_nothing_is_said_of_forms_that_did_not_compete() -> None:
    assert form_figures(measured("mixed", mixed=98.0), None) == {}


def test_all_networks_are_held_to_the_mean_and_the_least() -> None:
    def record(median: float, slower: tuple[str, ...] = ()) -> dict[str, Any]:
        ratio = {"median": median, "low": median, "high": median}
        return {"figures": {"forms": {"speedup": ratio, "slower_than": slower, "partitions": 3}}}

    fp16 = [case for case in cases() if case.precision is Precision.FP16]
    few = [case for case in fp16 if case.batch == 1][:LEAST_NETWORKS]
    many = [case for case in fp16 if case.batch > 1][:LEAST_NETWORKS]
    records: dict[str, Any] = {f"zoo.{case}": record(1.06) for case in (*few, *many)}
    outcome = judge(records)
    assert outcome.passed
    assert outcome.figures["partitions"] == 3 * 2 * LEAST_NETWORKS
    name = f"zoo.{few[0]}"
    assert not judge(records | {name: record(0.9)}).passed
    assert not judge(records | {name: record(1.1, ("unfused",))}).passed
    assert not judge(dict.fromkeys(records, record(1.04))).passed
    for lacking, words in ((few, "at batch 1"), (many, "at more than one image")):
        held = {n: r for n, r in records.items() if n not in {f"zoo.{case}" for case in lacking}}
        with pytest.raises(RowError, match=words):
            judge(held)
