"""Exported transformers with free dimensions: one plan that is right at every size."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from support.networks import free_exports

import wpk
from wpk.engine import random_inputs
from wpk.errors import EngineError, GraphError
from wpk.plan.plan import Outcome

pytestmark = pytest.mark.usefixtures("warm_without_cubins")

LAUNCHES = {"bert": 19, "distilbert": 18, "vit": 18}
"""Of two layers, with what makes the mask."""

BOTH = [name for name in free_exports.NAMES if name.endswith(".both")]
BATCH = [name for name in free_exports.NAMES if name.endswith(".batch")]


TWINS = {"bert.script.batch", "vit.script.batch", "distilbert.script.batch"}
TWINS |= {"bert.script.both", "distilbert.dynamo.both"}
"""Exports of networks whose other exporter's are tried by default; these are tried among the exhaustive tests."""


def _once(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in TWINS)) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", _once(BATCH))
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
@pytest.mark.parametrize("name", _once(BOTH))
def test_one_plan_of_kernels_is_right_at_every_batch_and_length(tmp_path: Path, name: str) -> None:
    model, path = free_exports.write(name, tmp_path), tmp_path / "a.plan"
    options = {"target": "h200", "search": "static", "check": "quick", "fallback": "off"}
    plan = wpk.optimize(model, path, **options).plan
    assert set(plan.free) == {"batch", "sequence"}
    assert plan.limits == {"sequence": (1, 40)}  # as many positions as the model has
    assert all(check.outcome is Outcome.OK for check in plan.checks)
    session = onnxruntime.InferenceSession(str(model))
    with wpk.load(path, device="cpu") as engine:
        for batch, sequence in ((1, 1), (1, 7), (2, 40), (3, 33), (5, 17), (2, 40)):
            inputs = random_inputs(plan, batch, {"batch": batch, "sequence": sequence})
            inputs["attention_mask"] = _lengths(batch, sequence)
            got, right = engine.run(inputs), session.run(None, inputs)
            for port, wanted in zip(plan.outputs, right, strict=True):
                assert np.isfinite(wanted).all()
                np.testing.assert_allclose(got[port.name], wanted, rtol=0, atol=5e-5)
        with pytest.raises(EngineError, match=r"has the size 41, .* for 1 to 40"):
            engine.run(random_inputs(plan, 0, {"sequence": 41}))


def _lengths(batch: int, sequence: int) -> NDArray[np.int64]:
    """Sentences of different lengths, at least a token each."""
    lengths = 1 + np.arange(batch) * (sequence - 1) // max(1, batch - 1)
    return (np.arange(sequence) < lengths[:, None]).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
def test_a_free_length_beside_a_fixed_batch(tmp_path: Path, batch: int) -> None:
    model, path = free_exports.write("bert.dynamo.both", tmp_path), tmp_path / "a.plan"
    ports = ("input_ids", "attention_mask")
    shapes = {port: [[batch, n] for n in (2, 12, 33)] for port in ports}
    options = {"target": "h200", "search": "static", "check": "quick", "fallback": "off"}
    plan = wpk.optimize(model, path, shapes=shapes, **options).plan
    assert (plan.free, plan.limits) == ({"sequence": 12}, {"sequence": (2, 33)})
    session = onnxruntime.InferenceSession(str(model))
    with wpk.load(path, device="cpu") as engine:
        for sequence in (2, 17, 33):
            inputs = random_inputs(plan, 1, {"sequence": sequence})
            inputs["attention_mask"] = _lengths(batch, sequence)
            got, right = engine.run(inputs), session.run(None, inputs)
            for port, wanted in zip(plan.outputs, right, strict=True):
                np.testing.assert_allclose(got[port.name], wanted, rtol=0, atol=5e-5)


def test_more_tokens_than_positions_are_refused(tmp_path: Path) -> None:
    model = free_exports.write("bert.dynamo.both", tmp_path)
    ports = ("input_ids", "attention_mask")
    shapes = {port: [[1, 1], [1, 64], [1, 64]] for port in ports}
    with pytest.raises(
        GraphError, match="'sequence' of 64; a constant of the model has rows for 40"
    ):
        wpk.optimize(model, tmp_path / "a.plan", target="h200", shapes=shapes, search="static")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert.dynamo.both", "distilbert.script.both"])
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
