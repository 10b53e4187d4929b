"""What reports say of nodes that ONNX Runtime executes, whatever their form."""

import json
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from support.networks.fallback_models import MODELS
from support.plans.warm import Warm

import wpk
from wpk.candidate import Kind
from wpk.plan import PlanBundle
from wpk.plan.measurement import Contestant, Measurement
from wpk.plan.plan import Evidence
from wpk.plan.plan_file import read_plan
from wpk.problems.signs import TIMES
from wpk.report import plain_text
from wpk.report.plans import summary
from wpk.report.plans.formats import write_report

NODES = ("NonZero_2", "Transpose_3", "GatherND_4", "Relu_5")
WHY = "NonZero: operator NonZero is not supported"


@pytest.fixture(name="bundle", scope="module")
def fixture_bundle(
    tmp_path_factory: pytest.TempPathFactory, warm_without_cubins: Warm
) -> PlanBundle:
    """A plan with an output of any shape."""
    folder = tmp_path_factory.mktemp("report")
    onnx.save(MODELS["nonzero"](), folder / "m.onnx")
    wpk.optimize(
        folder / "m.onnx", folder / "m.plan", target="h200", search="static", check="quick"
    )
    return read_plan(folder / "m.plan")


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_every_form_names_the_nodes_and_why(bundle: PlanBundle, form: str, tmp_path: Path) -> None:
    write_report(tmp_path / f"report.{form}", bundle)
    text = (tmp_path / f"report.{form}").read_text(encoding="utf-8").replace("\\_", "_")
    for words in (*NODES, WHY):
        assert words in text
    if form == "json":
        facts = json.loads(text)
        kinds = [each["candidate"]["maker"]["kind"] for each in facts["operators"]]
        assert kinds.count(Kind.RUNTIME) == 1
        assert [port["shape"] for port in facts["outputs"]] == [f"4{TIMES}6", "known after a run"]
        assert facts["library_steps"] == 0


def test_the_terminal_says_what_is_not_measured(bundle: PlanBundle) -> None:
    text = plain_text(*summary(bundle.plan))
    assert "4 nodes have no kernel: ONNX Runtime" in text
    assert "what it costs was not measured" in text


def test_what_was_measured_is_said(bundle: PlanBundle) -> None:
    steps = []
    for step in bundle.plan.steps:
        contestant = Contestant(step.candidate, 1e-4, 9e-5, 2e-4, 21, side_by_side=False)
        measured = Evidence(measurement=Measurement(contestant, (), "warm", (), 0, "nothing"))
        steps.append(step if step.fallback is None else replace(step, evidence=measured))
    text = plain_text(*summary(replace(bundle.plan, steps=tuple(steps))))
    assert "it takes 100.0 \N{MICRO SIGN}s, copies included" in text
