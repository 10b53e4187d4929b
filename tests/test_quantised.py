"""Quantised models from their file to a checked plan that gives ONNX Runtime's numbers."""

from pathlib import Path

import onnx
import pytest
from support.networks.quantised_models import INTEGERS, QDQ, QLINEAR, quantised_model

from wpk.pipeline import optimize
from wpk.plan import Outcome, PlanBundle


def planned(tmp_path: Path, text: str, precision: str) -> PlanBundle:
    onnx.save(quantised_model(text), tmp_path / "model.onnx")
    return optimize(
        tmp_path / "model.onnx", tmp_path / "model.plan", target="h200", precision=precision
    )


@pytest.mark.parametrize(
    ("text", "precision"),
    [(QDQ, "fp32"), (QDQ, "fp16"), (QLINEAR, "fp32"), (INTEGERS, "fp32"), (INTEGERS, "fp16")],
    ids=["qdq-fp32", "qdq-fp16", "qlinear-fp32", "integers-fp32", "integers-fp16"],
)
def test_every_check_passes(tmp_path: Path, text: str, precision: str) -> None:
    bundle = planned(tmp_path, text, precision)
    assert bundle.plan.checks
    assert all(check.outcome is Outcome.OK for check in bundle.plan.checks)


def test_quantisations_are_part_of_the_kernels_around_them(tmp_path: Path) -> None:
    bundle = planned(tmp_path, QDQ, "fp16")
    words = [step.operator.problem.words() for step in bundle.plan.steps]
    assert len(words) == 3  # what quantises the input, and the two convolutions
    assert "to uint8" in words[1]
    assert "to uint8" in words[2]
