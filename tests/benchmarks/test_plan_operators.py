"""Where a plan's time goes, as the figures of its row say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rows.plan_operators import beyond_bound, plan_figures

from wpk.candidate import Candidate, Kind, Maker
from wpk.plan.measurement import Contestant, Measurement
from wpk.plan.plan import Plan, Step
from wpk.plan.plan_file import read_plan

OURS = Candidate(Maker("conv_mma", "1"), ())
THEIRS = Candidate(Maker("cuDNN", "9", Kind.LIBRARY), ())


def measured(step: Step, seconds: float, bound: float, in_engine: float | None = None) -> Step:
    chosen = Contestant(OURS, seconds, seconds, seconds, 9, side_by_side=True)
    other = Contestant(THEIRS, 2 * seconds, seconds, seconds, 9, side_by_side=True)
    found = Measurement(chosen, (other,), "warm", (), 0, "")
    return replace(
        step,
        evidence=replace(
            step.evidence, measurement=found, bound_seconds=bound, in_engine_seconds=in_engine
        ),
    )


@pytest.fixture(name="plan")
def fixture_plan(small_plan: Path) -> Plan:
    return read_plan(small_plan).plan


def test_equal_problems_count_together_and_the_most_beyond_its_bound_comes_first(
    plan: Plan,
) -> None:
    first, second, *_ = plan.steps
    many = [measured(first, 3e-6, 1e-6)] * 4
    one = measured(second, 9e-6, 2e-6, in_engine=8e-6)
    told = beyond_bound([one, *many])
    assert [each["operators"] for each in told] == [4, 1]
    assert [each["beyond_seconds"] for each in told] == pytest.approx([8e-6, 6e-6])
    assert told[1]["one_in_engine_seconds"] == 8e-6
    assert told[1]["one_library_seconds"] == pytest.approx(18e-6)
    assert told[0]["made_by"] == first.candidate.maker.title
    assert told[0]["problem"] == first.operator.problem.words()


def test_an_operator_that_was_timed_in_the_engine_alone_counts_so(plan: Plan) -> None:
    step = plan.steps[0]
    (told,) = beyond_bound([replace(step, evidence=replace(step.evidence, in_engine_seconds=7e-6))])
    assert told["seconds"] == told["one_in_engine_seconds"] == 7e-6
    assert "one_seconds" not in told


def test_the_figures_of_a_plan_are_plain_data_and_add_up(plan: Plan) -> None:
    figures = json.loads(json.dumps(plan_figures(plan)))
    told = figures["plan"]
    assert told["operators"] == len(plan.steps)
    assert told["fallback"] == []
    assert sum(each["operators"] for each in told["kinds"].values()) == len(plan.steps)
    assert told["kinds"]["Convolution"]["seconds"] > 0
    assert told["operators_seconds"] == told["estimate_seconds"] > 0  # nothing was measured
    assert sum(each["seconds"] for each in figures["beyond_bound"]) == pytest.approx(
        told["operators_seconds"]
    )
