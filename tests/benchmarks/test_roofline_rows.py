"""What every template is measured on, which of its trials counts, and the page of all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest
import roofline_page
from rows.base import Context, RowError
from rows.roofline import GOALS, Point, best_trial, judge, point, rows, step_of
from rows.roofline_models import SIZES, STUDIES
from support.plans.candidates import kernel

from wpk.lowering.model import lower_model
from wpk.lowering.program import Operator
from wpk.performance.bound import bound
from wpk.plan.measurement import Contestant, Measurement
from wpk.plan.plan import Plan
from wpk.plan.plan_file import read_plan
from wpk.problems import Fallback, Problem
from wpk.schedules.registry import TEMPLATE_OF, TEMPLATES
from wpk.search.store.key import Setup, StoreKey
from wpk.search.store.store import TuningStore
from wpk.target_features import TargetFeatures
from wpk.targets.registry import find_target
from wpk.trial import Regime, Status, Trial

H200 = find_target("h200")


def test_every_template_is_measured() -> None:
    assert STUDIES.keys() == TEMPLATE_OF.keys()


@pytest.mark.parametrize("name", STUDIES)
def test_a_template_carries_its_three_operators_and_they_grow(name: str) -> None:
    template, operators = TEMPLATE_OF[name], _kernels(name)
    bounds = []
    for size in SIZES:
        (operator,) = [each for each in operators if size in each.nodes]
        assert isinstance(operator.problem, template.problem_type)
        assert template.why_not(operator.problem, H200) is None
        _, columns = template.space(operator.problem, H200)
        assert len(next(iter(columns.values()))) > 0
        bounds.append(bound(operator.problem, H200).seconds)
    assert bounds == sorted(bounds)
    assert bounds[-1] > 4 * bounds[0]


@pytest.mark.parametrize("name", STUDIES)
def test_all_rivals_are_left_out_that_no_other_operator_needs(name: str) -> None:
    study, operators = STUDIES[name], _kernels(name)
    able = {each.problem: _able(each.problem) for each in operators}
    studied = [able[each.problem] for each in operators if set(SIZES) & set(each.nodes)]
    rivals, left_out = set.union(*studied) - {name}, set(study.left_out)
    assert left_out <= rivals
    assert all(name in each - left_out for each in studied)
    assert all(each - left_out for each in able.values())
    for kept in rivals - left_out:
        assert not all(each - left_out - {kept} for each in able.values()), kept


@cache
def _kernels(name: str) -> list[Operator]:
    """The operators of a template's study that ONNX Runtime does not execute."""
    study = STUDIES[name]
    with TemporaryDirectory() as folder:
        model = Path(folder, "roofline.onnx")
        study.write(model)
        lowered = lower_model(
            model,
            {},
            study.precision,
            fallback=True,
            changed=study.changed,
            features=TargetFeatures(warpgroups=True),
        )
    return [each for each in lowered.program.operators if not isinstance(each.problem, Fallback)]


def _able(problem: Problem) -> set[str]:
    """The templates that have schedules for a problem."""
    carry = [t for t in TEMPLATES if isinstance(problem, t.problem_type)]
    carry = [t for t in carry if t.why_not(problem, H200) is None]
    return {t.name for t in carry if len(next(iter(t.space(problem, H200)[1].values())))}


def test_rivals_are_left_out_on_the_command_line(tmp_path: Path) -> None:
    class Stopped(Context):
        def wpk(self, *arguments: object) -> NoReturn:
            raise RowError(" ".join(map(str, arguments)))

    (row,) = [each for each in rows() if each.name == "roofline.conv_simt"]
    with pytest.raises(RowError, match=r"--skip-template conv_mma --skip-template conv_wgmma$"):
        row.measure(Stopped(tmp_path, tmp_path, deadline=0.0))


@pytest.fixture(name="plan", scope="module")
def fixture_plan(small_plan: Path) -> Plan:
    """With the first step measured."""
    plan = read_plan(small_plan).plan
    chosen = Contestant(kernel("any", ()), 2e-6, 1e-6, 3e-6, 11, side_by_side=True)
    first = plan.steps[0]
    measured = replace(first.evidence, measurement=Measurement(chosen, (), "warm", (), 0, ""))
    return replace(plan, steps=(replace(first, evidence=measured), *plan.steps[1:]))


def write_trials(path: Path, plan: Plan) -> None:
    """The static choice at 9 µs, faster ones that do not count, and a slower one."""
    step = plan.steps[0]
    candidate = step.candidate
    setup = Setup(plan.target, plan.arch, "nvrtc", "driver")
    changed = tuple((name, value + 1) for name, value in candidate.configuration)
    other = replace(candidate, configuration=changed)
    key = StoreKey(step.operator.problem, candidate.maker, setup)
    old = replace(key, maker=replace(candidate.maker, version="0"))
    elsewhere = replace(key, setup=replace(setup, target="v100"))
    with TuningStore(path) as store:
        run = store.begin_run(0).id
        ok = Status.OK
        for where, trial, regime in (
            (key, Trial(other, ok, (10e-6, 10e-6, 11e-6)), Regime.WARM),
            (key, Trial(candidate, ok, (9e-6, 9e-6, 50e-6)), Regime.WARM),
            (key, Trial(candidate, ok, (1e-6,)), Regime.COLD),
            (key, Trial(other, Status.WRONG_RESULT, (), "differs"), Regime.WARM),
            (old, Trial(candidate, ok, (1e-6,)), Regime.WARM),
            (elsewhere, Trial(candidate, ok, (1e-6,)), Regime.WARM),
        ):
            store.record(run, where, trial, regime)


def test_the_best_trial_is_of_this_template_version_target_and_regime(
    tmp_path: Path, plan: Plan
) -> None:
    write_trials(tmp_path / "trials.sqlite", plan)
    step = plan.steps[0]
    best = best_trial(tmp_path / "trials.sqlite", step.candidate.maker.name, step, plan)
    assert best.seconds == (9e-6, 9e-6, 50e-6)
    with pytest.raises(RowError, match="no schedule of pad ran"):
        best_trial(tmp_path / "trials.sqlite", "pad", step, plan)
    with pytest.raises(RowError, match="was not measured"):
        best_trial(tmp_path / "trials.sqlite", "pad", plan.steps[1], plan)


def test_a_point_says_what_the_compiler_made_of_it(tmp_path: Path, plan: Plan) -> None:
    write_trials(tmp_path / "trials.sqlite", plan)
    step = plan.steps[0]
    best = best_trial(tmp_path / "trials.sqlite", step.candidate.maker.name, step, plan)
    found = point(step.operator.problem, best, plan, tmp_path / "compiled")
    kernel = plan.kernels[step.launches[0].kernel]
    assert found.registers == kernel.resources.registers
    assert found.compile_seconds > 0
    assert found.median_seconds == 9e-6
    assert found.flops == pytest.approx(found.operations / 9e-6)
    assert found.bound_seconds == pytest.approx(step.evidence.bound_seconds)
    assert found.of_bound == pytest.approx(found.bound_seconds / 9e-6)


def test_an_operator_is_found_by_its_node(plan: Plan) -> None:
    node = plan.steps[0].operator.nodes[0]
    assert step_of(plan, node) is plan.steps[0]
    with pytest.raises(RowError, match="0 operators compute 'large'"):
        step_of(plan, "large")


POINT = Point("matmul|fp16", "a=1", "warm", 2e-6, 1.9e-6, 2.1e-6, 8, 16, 1e-6, "L2", 64, 0, 0, 1.0)


@pytest.mark.parametrize(
    ("worse", "reached"),
    [
        (POINT, [True, True]),
        (replace(POINT, compile_seconds=1.6), [False, True]),
        (replace(POINT, spilled_bytes=4), [True, False]),
    ],
)
def test_the_slowest_compile_and_the_largest_spill_are_judged(
    worse: Point, reached: list[bool]
) -> None:
    outcome = judge({"small": POINT, "large": worse}, H200)
    assert [goal["reached"] for goal in outcome.figures["goals"]] == reached
    assert outcome.passed is all(reached)
    assert len(GOALS) == len(reached)


def test_the_page_shows_each_size_and_what_is_missing(tmp_path: Path) -> None:
    outcome = judge(dict.fromkeys(SIZES, POINT), H200)
    machine = {"gpu": "NVIDIA H200", "driver": "580", "nvrtc": "nvrtc 13.5"}
    record: dict[str, Any] = {"figures": outcome.figures, "machine": machine}
    record |= {"date": "2026-01-02T03:04:05+00:00", "commit": "abc", "seconds": 1.0}
    results, output = tmp_path / "results.json", tmp_path / "page.md"
    results.write_text(json.dumps({"schema": 1, "rows": {"roofline.gemm_mma": record}}))
    assert roofline_page.main([str(results), str(output)]) == 0
    text = output.read_text()
    assert "## gemm_mma\n\nNVIDIA H200, driver 580, nvrtc 13.5; 2026-01-02, abc." in text
    assert "tensor cores 98" in text  # the peak in fp16
    line = r"| matmul\|fp16 | 2.00 (1.90 to 2.10) | 8e-06 | 4e-06 | 50% | L2 | warm | 64 | 0 | 0 | 1.00 |"
    assert text.count(line) == len(SIZES)
    assert "Not measured: `arg_reduction`, `attention_mma`," in text
    assert "`gemm_mma`" not in text


def test_a_file_without_templates_makes_no_page(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"schema": 1, "rows": {}}))
    with pytest.raises(SystemExit, match="measure them first"):
        roofline_page.main([str(results), str(tmp_path / "page.md")])
    assert not (tmp_path / "page.md").exists()
