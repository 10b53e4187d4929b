"""What reports say of control flow whose bodies are engines, whatever their form."""

from pathlib import Path
from typing import Any

import onnx
import pytest
from support.networks.control_flow_models import KEPT, MODELS

import wpk
from wpk.plan import PlanBundle
from wpk.report import plain_text
from wpk.report.plans import summary
from wpk.report.plans.formats import write_report

pytestmark = pytest.mark.usefixtures("one_cubin")


def bundle_of(name: str, folder: Path) -> PlanBundle:
    onnx.save(MODELS[name](), folder / "m.onnx")
    how: dict[str, Any] = {
        "target": "h200",
        "search": "static",
        "check": "off",
        "skip_passes": KEPT,
    }
    return wpk.optimize(folder / "m.onnx", folder / "m.plan", **how)


def test_every_form_goes_into_bodies(tmp_path: Path) -> None:
    bundle = bundle_of("nested", tmp_path)
    for form in ("html", "md", "json"):
        write_report(tmp_path / f"report.{form}", bundle)
        text = (tmp_path / f"report.{form}").read_text(encoding="utf-8").replace("\\_", "_")
        assert "body 1 of onnxruntime_0, body 2 of onnxruntime_0" in text, form
    text = plain_text(*summary(bundle))
    assert "the host looks at the condition and runs the engines of its bodies" in text
    assert "its checks: unchecked" in text
