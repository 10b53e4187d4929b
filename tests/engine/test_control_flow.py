"""Control flow whose bodies are engines, from the model to numbers, on the CPU and on a device with streams."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.devices.stream_device import Streams
from support.networks.control_flow_models import BRANCHES, DRAWN, KEPT, MODELS, drawn
from support.networks.fallback_models import LEFT_ALONE, text_model
from support.networks.right_outputs import right

import wpk
from wpk.assembly import write_lock
from wpk.backends import open_device
from wpk.checks import Scope, prove_passes, verify
from wpk.control_flow import Turns
from wpk.dtypes import Precision
from wpk.engine import Engine, control_run, turns_run
from wpk.engine.body_call import BodyCall, BoundBody
from wpk.engine.deciding import count_of
from wpk.errors import LaunchError, PlanError, UnsupportedError, VerificationError
from wpk.lowering.model import lower_model
from wpk.plan import Outcome, PlanBundle
from wpk.plan.control import CONTROL
from wpk.plan.plan_file import (
    plan_text,
    read_plan,
    spec_of_bundle,
    write_parts,
    write_plan,
)
from wpk.progress import silent

pytestmark = pytest.mark.usefixtures("one_finalist")


@pytest.fixture(name="plans", scope="module")
def fixture_plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Each model beside its plan, unchecked; made when first asked for."""
    return {"": (tmp_path_factory.mktemp("control"), Path())}


def written(plans: dict[str, tuple[Path, Path]], name: str) -> tuple[Path, Path]:
    if name not in plans:
        folder = plans[""][0]
        plans[name] = folder / f"{name}.onnx", folder / f"{name}.plan"
        onnx.save(MODELS[name](), plans[name][0])
        wpk.optimize(*plans[name], target="h200", search="static", check="off", skip_passes=KEPT)
    return plans[name]


def require_equal(given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert given.keys() == expected.keys()
    for name, array in expected.items():
        assert (given[name].dtype, given[name].shape) == (array.dtype, array.shape), name
        np.testing.assert_allclose(given[name], array, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_every_way_gives_what_onnxruntime_gives_and_everything_is_given_back(
    plans: dict[str, Any], name: str
) -> None:
    model, path = written(plans, name)
    device = Streams()
    with Engine(read_plan(path), device) as engine:
        assert [s.candidate for s in engine.plan.steps if s.fallback is not None] == [CONTROL]
        for seed, way in enumerate(DRAWN[name]):
            inputs = drawn(engine.plan, seed, way)
            expected = right(model, inputs)
            outputs = engine.run(engine.upload(inputs), stream=77)
            given = {
                key: device.read(array.address, array.nbytes)
                .view(expected[key].dtype)
                .reshape(array.shape)
                for key, array in outputs.items()
            }
            require_equal(given, expected)
            require_equal(engine.run(inputs), expected)
        del outputs
    assert not device.held


@pytest.mark.parametrize("name", ["nested", "collect", "free scan"])
def test_in_the_process_of_the_emulator(plans: dict[str, Any], name: str) -> None:
    model, path = written(plans, name)
    with wpk.load(path, device="cpu") as engine:
        for seed, way in enumerate(DRAWN[name]):
            inputs = drawn(engine.plan, seed, way)
            require_equal(engine.run(inputs), right(model, inputs))


def test_bodies_are_of_the_precision_that_is_asked_for(tmp_path: Path) -> None:
    onnx.save(MODELS["if"](), tmp_path / "m.onnx")
    bundle = wpk.optimize(
        tmp_path / "m.onnx",
        tmp_path / "m.plan",
        target="h200",
        search="static",
        precision="fp16",
        check="quick",
        skip_passes=KEPT,
    )
    assert {body.plan.precision.value for body in bundle.bodies.values()} == {"fp16"}
    (step,) = (each for each in bundle.plan.steps if each.bodies)
    assert {check.outcome for check in step.evidence.checks} == {Outcome.OK}


def test_bodies_are_checked_as_every_plan_is(tmp_path: Path) -> None:
    onnx.save(MODELS["nested"](), tmp_path / "m.onnx")
    bundle = wpk.optimize(
        tmp_path / "m.onnx",
        tmp_path / "m.plan",
        target="h200",
        search="static",
        check="quick",
        skip_passes=KEPT,
    )
    waiting = [bundle]
    depth = 0
    while waiting:
        each = waiting.pop()
        waiting += each.bodies.values()
        depth += 1
        assert {check.outcome for check in each.plan.checks} == {Outcome.OK}
        for step in each.plan.steps:
            assert {check.outcome for check in step.evidence.checks} == {Outcome.OK}
    assert depth == 4  # the model, the Loop's body, both branches
    found = wpk.verify(tmp_path / "m.plan", tmp_path / "m.onnx", device="cpu", check="quick")
    assert any("body 1 of" in check.name for check in found.checks.whole)


REVERSED = """g (float[3, 2] x, bool c) => (float[3, 2] y) <int64[2] n = {3, 2}, int64[2] m = {1, 3}>
    { y = If (c) <
        then_branch = t () => (float[3, 2] p) { p = ReverseSequence<time_axis = 0, batch_axis = 1> (x, n) },
        else_branch = e () => (float[3, 2] q) { q = ReverseSequence<time_axis = 0, batch_axis = 1> (x, m) }> }"""
"""What no kernel computes, either way."""


GROWS = """g (float[3] x, int64 m) => (float[r] y)
    { y = Loop (m, , x) <body = b (int64 i, bool k, float[a] v) => (bool d, float[e] w)
        { d = Identity (k)  w = Concat<axis = 0> (v, x) }> }"""
"""A state whose shape changes from turn to turn."""


def swapped(bundle: PlanBundle) -> PlanBundle:
    """The plan, with each branch in the place of the other."""
    steps = tuple(replace(step, bodies=step.bodies[::-1]) for step in bundle.plan.steps)
    return replace(bundle, plan=replace(bundle.plan, steps=steps))


def alike(text: str, tmp_path: Path, **options: Any) -> tuple[Path, PlanBundle]:
    """A model and its plan, unchecked."""
    onnx.save(text_model(text), tmp_path / "m.onnx")
    return tmp_path / "m.onnx", wpk.optimize(
        tmp_path / "m.onnx",
        tmp_path / "m.plan",
        target="h200",
        search="static",
        check="off",
        skip_passes=(*KEPT, *LEFT_ALONE),
        **options,
    )


def test_a_wrong_branch_is_found(tmp_path: Path) -> None:
    model, bundle = alike(BRANCHES, tmp_path)
    lowered = lower_model(model, {}, Precision.FP32, KEPT, fallback=True)
    proof = prove_passes(lowered, Scope(quick=True, seeds=1), silent)
    with open_device("cpu") as device:
        assert verify(bundle, proof, device, silent).passed
        outcome = verify(swapped(bundle), proof, device, silent)
    assert [each.check.outcome for each in outcome.operators] == [Outcome.FAILED]
    assert any(check.failed for check in outcome.whole)


def test_one_turn_too_few_is_found(plans: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, path = written(plans, "loop")
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    given = [{"x": x, "m": np.array(3), "stop": np.array([9.0], np.float32)}]
    assert wpk.verify(path, model, device="cpu", check="quick", inputs=given).passed

    def fewer(*given: Any) -> int:
        return max(0, count_of(*given) - 1)

    monkeypatch.setattr(turns_run, "count_of", fewer)
    with pytest.raises(VerificationError, match="the numbers disagree"):
        wpk.verify(path, model, device="cpu", check="quick", inputs=given)


def test_a_loop_that_does_not_end_is_given_up(
    plans: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, path = written(plans, "nested")
    with wpk.load(path, device="cpu") as engine:
        inputs = drawn(engine.plan, 1, {"m": 2**62, "c": True})
        (ready,) = engine.host_steps._driven.values()
        assert isinstance(ready.control, Turns)
        monkeypatch.setattr(control_run, "_RUN_SECONDS", 0.05)
        with pytest.raises(LaunchError, match="and did not end"):
            engine.run(inputs)


def test_bodies_of_another_node_are_refused(plans: dict[str, Any], tmp_path: Path) -> None:
    _, path = written(plans, "loop")
    _, other = written(plans, "scan")
    bundle, foreign = read_plan(path), read_plan(other)
    ((digest, body),) = foreign.bodies.items()
    steps = tuple(
        replace(step, bodies=(digest,) if step.bodies else ()) for step in bundle.plan.steps
    )
    forged = replace(bundle, plan=replace(bundle.plan, steps=steps), bodies={digest: body})
    with pytest.raises(PlanError, match=r"plan.steps\[\d\].bodies: a body has the inputs"):
        write_plan(tmp_path / "forged.plan", forged)


def test_a_body_that_was_changed_is_refused(plans: dict[str, Any], tmp_path: Path) -> None:
    _, path = written(plans, "if")
    bundle = read_plan(path)
    digest, body = next(iter(bundle.bodies.items()))
    changed = replace(body, plan=replace(body.plan, wpk="another"))
    with pytest.raises(PlanError, match="bodies/"):
        write_plan(tmp_path / "m.plan", replace(bundle, bodies=bundle.bodies | {digest: changed}))
    forged = replace(bundle, bodies={d: body for d, body in bundle.bodies.items() if d != digest})
    write_parts(tmp_path / "m.plan", plan_text(bundle.plan), spec_of_bundle(bundle), forged)
    with pytest.raises(PlanError, match=r"plan.bodies: not stored: \['"):
        read_plan(tmp_path / "m.plan")


def test_a_state_that_is_not_carried_on_is_found(
    plans: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = written(plans, "nested")
    bound, first = BodyCall.bound, dict[int, int]()

    def stale(call: BodyCall, inputs: Any, outputs: Any) -> BoundBody:
        if "v" in inputs:
            inputs = inputs | {"v": first.setdefault(id(call), inputs["v"])}
        return bound(call, inputs, outputs)

    assert wpk.verify(path, model, device="cpu", check="quick").passed
    monkeypatch.setattr(BodyCall, "bound", stale)
    with pytest.raises(VerificationError, match="the numbers disagree"):
        wpk.verify(path, model, device="cpu")


def test_the_lock_of_a_plan_holds_those_of_its_bodies(tmp_path: Path) -> None:
    model, bundle = alike(BRANCHES, tmp_path)
    write_lock(tmp_path / "m.lock", bundle)
    wpk.rebuild(model, tmp_path / "again.plan", tmp_path / "m.lock", check="off")
    assert (tmp_path / "again.plan").read_bytes() == (tmp_path / "m.plan").read_bytes()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (REVERSED, "nothing in its bodies has a kernel"),
        (GROWS, "only a run decides the shape of 'y'"),
    ],
)
def test_what_stays_with_onnxruntime_says_why(text: str, why: str, tmp_path: Path) -> None:
    onnx.save(text_model(text), tmp_path / "m.onnx")
    lowered = lower_model(tmp_path / "m.onnx", {}, Precision.FP32, LEFT_ALONE, fallback=True)
    notes = " ".join(operator.note for operator in lowered.program.operators)
    assert why in notes
    assert not lowered.bodies


def test_without_onnxruntime_control_flow_is_carried_where_its_bodies_are(tmp_path: Path) -> None:
    _, bundle = alike(BRANCHES, tmp_path, fallback="off")
    assert [step.candidate for step in bundle.plan.steps] == [CONTROL]
    with pytest.raises(
        UnsupportedError, match=r"1 nodes are not supported.*\n.*If.*ReverseSequence"
    ):
        alike(REVERSED, tmp_path, fallback="off")
    with pytest.raises(UnsupportedError, match="operator Loop is not supported"):
        alike(GROWS, tmp_path, fallback="off")
