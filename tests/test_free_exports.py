"""Exported transformers with free dimensions: one plan that is right at every size."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from support.networks import free_exports

import wpk
from wpk.engine import random_inputs
from wpk.errors import EngineError
from wpk.plan.plan import Outcome

pytestmark = pytest.mark.usefixtures("one_finalist")

LAUNCHES = {"bert": 19, "distilbert": 18, "vit": 18}
"""Of two layers, with what makes the mask."""

BOTH = [name for name in free_exports.NAMES if name.endswith(".both")]
BATCH = [name for name in free_exports.NAMES if name.endswith(".batch")]


@pytest.mark.slow
@pytest.mark.parametrize("name", BATCH)
def test_a_free_batch_is_right_at_every_size(tmp_path: Path, name: str) -> None:
    model, path = free_exports.write(name, tmp_path), tmp_path / "a.plan"
    plan = wpk.optimize(model, path, target="h200", search="static", check="quick").plan
    assert len(plan.free) == 1
    assert (
        sum(len(step.launches) for step in plan.steps)
        <= LAUNCHES[name.split(".")[0].removesuffix("_eager")]
    )
    assert all(check.outcome is Outcome.OK for check in plan.checks)
    session = onnxruntime.InferenceSession(str(model))
    with wpk.load(path, device="cpu") as engine:
        for batch in (1, 2, 5):
            inputs = random_inputs(plan, batch, dict.fromkeys(plan.free, batch))
            got, right = engine.run(inputs), session.run(None, inputs)
            for port, wanted in zip(plan.outputs, right, strict=True):
                np.testing.assert_allclose(got[port.name], wanted, rtol=0, atol=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_a_plan_for_each_length_makes_one_engine(tmp_path: Path, name: str) -> None:
    model, plans = free_exports.write(name, tmp_path), []
    for length in (8, 13):
        plans.append(tmp_path / f"{length}.plan")
        shapes = {
            port: [[n, length] for n in (1, 2, 4)] for port in ("input_ids", "attention_mask")
        }
        options = {"shapes": shapes, "target": "h200", "search": "static", "check": "quick"}
        plan = wpk.optimize(model, plans[-1], **options).plan
        assert plan.free == {"batch": 2}
        assert all(check.outcome is Outcome.OK for check in plan.checks)
    session = onnxruntime.InferenceSession(str(model))
    with wpk.load_profiles(plans, device="cpu") as profiles:
        for engine in profiles.engines.values():
            for batch in (1, 4):
                inputs = random_inputs(engine.plan, batch, {"batch": batch})
                got, right = profiles.run(inputs), session.run(None, inputs)
                for port, wanted in zip(engine.plan.outputs, right, strict=True):
                    np.testing.assert_allclose(got[port.name], wanted, rtol=0, atol=5e-5)


def test_limits_are_kept_to(tmp_path: Path) -> None:
    model, path = free_exports.write("vit.script.batch", tmp_path), tmp_path / "a.plan"
    shapes = {"x": [[n, 3, 32, 32] for n in (2, 4, 6)]}
    options = {"shapes": shapes, "target": "h200", "search": "static", "check": "off"}
    plan = wpk.optimize(model, path, **options).plan
    assert plan.free == {"batch": 4}
    assert plan.limits == {"batch": (2, 6)}
    assert plan.provenance.shapes == {"x": tuple(map(tuple, shapes["x"]))}
    with wpk.load(path, device="cpu") as engine:
        for size in (1, 7):
            inputs = random_inputs(plan, 0, {"batch": size})
            with pytest.raises(EngineError, match=f"has the size {size}, .* for 2 to 6"):
                engine.run(inputs)
