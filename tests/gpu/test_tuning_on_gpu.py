"""`wpk optimize` measures on the GPU: checked plans, evidence, nothing measured twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from subjects import exported

from wpk.backends import open_gpu
from wpk.candidate import GENERATED
from wpk.cli.main import main
from wpk.engine import time_engine
from wpk.plan.plan_file import read_plan

pytestmark = [pytest.mark.gpu, pytest.mark.timed]


def optimize(model: Path, plan: Path, *options: str) -> float:
    begun = time.monotonic()
    command = ["optimize", str(model), "-o", str(plan), "--target", "auto", "--precision", "fp16"]
    assert main([*command, "--cache", str(plan.parent / "cache"), *options]) == 0
    return time.monotonic() - begun


def test_measuring_beats_or_keeps_the_static_choice(
    tmp_path: Path, record: Callable[[str, object], None]
) -> None:
    model = tmp_path / "resnet18.onnx"
    onnx.save(exported.refill("tv_resnet18.dynamo"), model)
    static, tuned, again = (tmp_path / f"{name}.plan" for name in ("static", "tuned", "again"))
    optimize(model, static, "--search", "static", "--check", "off")
    first = optimize(model, tuned, "--effort", "0", "--budget", "30s", "--check", "off")
    second = optimize(model, again, "--effort", "0", "--budget", "30s", "--check", "off")
    assert main(["verify", str(tuned), str(model), "--device", "gpu"]) == 0
    bundles = [read_plan(path) for path in (static, tuned, again)]
    with open_gpu() as gpu:
        before, after = (time_engine(bundle, gpu).engine for bundle in bundles[:2])
    evidence = [step.evidence for step in bundles[1].plan.steps]
    measured = [each.measurement for each in evidence if each.measurement is not None]
    record(
        "tuning.resnet18.fp16",
        {
            "static_seconds": before.median,
            "tuned_seconds": after.median,
            "first_command_seconds": first,
            "second_command_seconds": second,
            "trials": sum(each.trials for each in measured),
            "failed": sum(each.failed for each in measured),
            "stops": sorted({each.stop for each in measured}),
        },
    )
    assert len(measured) == len(evidence)
    assert all(m.median_seconds > e.bound_seconds for m, e in zip(measured, evidence, strict=True))
    assert after.median < before.median * (1 + before.noise + after.noise + 0.02)
    assert second < first
    whole = bundles[1].plan.measurement
    assert whole is not None
    assert whole.plan.median_seconds == min(each.median_seconds for each in whole.variants)
    assert any(
        each.candidate.family != GENERATED for m in measured for each in (m.chosen, *m.others)
    )
