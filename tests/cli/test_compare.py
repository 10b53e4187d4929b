"""Two plans side by side."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.plans.candidates import kernel

from wpk.plan.measurement import Contestant, EngineMeasurement, EngineVariant, Measurement
from wpk.plan.plan import Plan, PlanBundle, Step
from wpk.plan.plan_file import read_plan, write_plan
from wpk.problems.signs import TIMES
from wpk.report.plans.compare import compare_plans

Command = Callable[..., Any]


def _measured(step: Step, micros: float, regime: str = "warm") -> Step:
    seconds = micros * 1e-6, micros * 0.9e-6, micros * 1.1e-6
    chosen = Contestant(kernel("t"), *seconds, samples=5, side_by_side=True)
    measurement = Measurement(chosen, (), regime, (), 0, "exhausted")
    return replace(step, evidence=replace(step.evidence, measurement=measurement))


def _engine(micros: float) -> EngineMeasurement:
    seconds = micros * 1e-6
    variant = EngineVariant("mixed", seconds, 0.99 * seconds, 1.01 * seconds, 0, 2)
    return EngineMeasurement((variant,), "mixed")


@pytest.fixture
def bundle(plan: Path) -> PlanBundle:
    return read_plan(plan)


def _with_times(plan: Plan, *micros: float) -> Plan:
    steps = tuple(_measured(s, m) for s, m in zip(plan.steps, micros, strict=True))
    return replace(plan, steps=steps, measurement=_engine(sum(micros)))


def test_a_plan_compared_with_itself_differs_in_nothing(wpk: Command, plan: Path) -> None:
    result = wpk("compare", plan, plan)
    assert result.code == 0
    assert "differs" not in result.out
    assert "2 of 2 operators have the same choice; 0 have no partner" in result.out
    assert "beyond noise" not in result.out  # nothing was measured


def test_measured_times_give_a_ratio_with_its_band(bundle: PlanBundle) -> None:
    before, after = _with_times(bundle.plan, 10, 20), _with_times(bundle.plan, 5, 20)
    found = compare_plans(before, after)
    first, second = (pair.speedup for pair in found.pairs)
    assert first is not None
    assert second is not None
    assert first.median == pytest.approx(2)
    assert (first.low, first.high) == pytest.approx((9 / 5.5, 11 / 4.5))
    assert first.beyond_noise
    assert not second.beyond_noise
    (total,) = found.totals
    assert (total.first, total.second) == pytest.approx((30e-6, 25e-6))
    assert found.engine.speedup is not None
    assert found.engine.speedup.median == pytest.approx(30 / 25)


def test_times_of_different_kinds_are_not_compared(bundle: PlanBundle) -> None:
    plan = bundle.plan
    warm = replace(plan, steps=tuple(_measured(step, 10) for step in plan.steps))
    cold = replace(plan, steps=tuple(_measured(step, 10, "cold") for step in plan.steps))
    found = compare_plans(warm, cold)
    assert {pair.compared for pair in found.pairs} == {"one warm, one cold"}
    assert all(pair.speedup is None for pair in found.pairs)
    assert not found.totals
    assert {pair.compared for pair in compare_plans(warm, plan).pairs} == {"estimated"}


def test_operators_find_their_partners_across_precisions(
    wpk: Command, model: Path, plan: Path, tmp_path: Path
) -> None:
    half = tmp_path / "half.plan"
    options = ["--target", "h200", "--precision", "fp16", "--check", "off"]
    assert wpk("optimize", model, "-o", half, *options).code == 0
    result = wpk("compare", plan, half)
    assert "precision  fp32  fp16" in result.out
    assert "0 have no partner" in result.out
    data = json.loads(wpk("compare", plan, half, "--json").out)
    assert [d["what"] for d in data["differences"]] == ["precision"]
    assert all(pair["first"] and pair["second"] for pair in data["pairs"])


def test_an_operator_without_a_partner_is_listed(bundle: PlanBundle) -> None:
    plan = bundle.plan
    found = compare_plans(plan, replace(plan, steps=plan.steps[:1]))
    assert [pair.compared for pair in found.pairs] == ["estimated", "no partner"]
    backwards = compare_plans(replace(plan, steps=plan.steps[:1]), plan)
    assert backwards.pairs[1].first is None
    assert backwards.pairs[1].second is not None


def test_plans_of_different_models_are_refused_naming_both(
    wpk: Command, refused: Command, plan: Path, other_model: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.plan"
    options = ["--target", "h200", "--check", "off"]
    assert wpk("optimize", other_model, "-o", other, *options).code == 0
    message = refused("compare", plan, other)
    assert "different models: small.onnx" in message
    assert "other.onnx" in message


def test_the_whole_engines_are_shown(wpk: Command, bundle: PlanBundle, tmp_path: Path) -> None:
    paths = [tmp_path / "a.plan", tmp_path / "b.plan"]
    for path, micros in zip(paths, (20.0, 10.0), strict=True):
        write_plan(path, replace(bundle, plan=_with_times(bundle.plan, micros, 1)))
    out = wpk("compare", *paths).out
    (line,) = [line for line in out.splitlines() if line.startswith("whole engine")]
    assert "beyond noise B is faster in 1, slower in 0, even in 1" in out
    assert line.split()[2:5] == ["21.00", "11.00", f"1.91{TIMES}"]
