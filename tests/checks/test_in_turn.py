"""Operators in turn: what shows that an engine brings them together where outputs say nothing."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.networks.silent_models import AMPLIFIES, save_silent
from support.plans.candidates import library_call

import wpk.engine.bindings
from wpk.checks.in_turn import executes_all
from wpk.checks.pass_proof import prove_passes
from wpk.checks.scope import Scope
from wpk.checks.verification import Verification, verify
from wpk.emulator import Emulator
from wpk.lowering.model import lower_model
from wpk.pipeline import optimize
from wpk.plan.memory import MemoryPlan
from wpk.plan.plan import Check, Outcome
from wpk.progress import silent

pytestmark = pytest.mark.usefixtures("one_cubin")

RESIDUAL = AMPLIFIES.replace(
    "y = Sin(a5)", "s5 = Sin(a5)\n  t = Add(s5, s0)\n  u = MatMul(t, m)\n  y = Sin(u)"
)
"""The first step's result is read by the last but one: it must stay where it is all the while."""


def verified(model: Path, text: str) -> Verification:
    path = save_silent(model, text)
    bundle = optimize(path, path.with_suffix(".plan"), target="h200", check="off")
    lowered = lower_model(path, {}, bundle.plan.precision)
    proof = prove_passes(lowered, Scope(seeds=1), silent)
    return verify(bundle, proof, Emulator(), silent)


def in_turn(found: Verification) -> list[Check]:
    return [check for check in found.whole if check.name == "operators in turn, seed 0"]


@pytest.mark.parametrize("text", [AMPLIFIES, RESIDUAL])
def test_an_inconclusive_engine_gives_what_its_operators_give(tmp_path: Path, text: str) -> None:
    found = verified(tmp_path / "model.onnx", text)
    assert found.whole[0].outcome is Outcome.INCONCLUSIVE
    (check,) = in_turn(found)
    assert check.outcome is Outcome.OK
    assert "to the bit" in check.detail


def test_where_outputs_say_enough_operators_are_not_executed_again(tmp_path: Path) -> None:
    tame = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 8] x) => (float[2, 8] y)'
    found = verified(tmp_path / "model.onnx", tame + "{ a = MatMul(x, m)  y = Sin(a) }")
    assert [check.outcome for check in found.whole] == [Outcome.OK]


def test_values_that_share_memory_by_mistake_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = wpk.engine.bindings.arena

    def heaped(plan: Any, order: Any, dims: Mapping[str, int]) -> MemoryPlan:
        """The first step's result lies where the third's is written."""
        found = right(plan, order, dims)
        first, third = (plan.values[plan.steps[i].operator.outputs[0]].buffer for i in (0, 2))
        return replace(found, offsets={**found.offsets, first: found.offsets[third]})

    monkeypatch.setattr(wpk.engine.bindings, "arena", heaped)
    found = verified(tmp_path / "model.onnx", RESIDUAL)
    assert all(each.check.outcome is Outcome.OK for each in found.operators)
    assert found.whole[0].outcome is Outcome.INCONCLUSIVE
    (check,) = in_turn(found)
    assert check.outcome is Outcome.FAILED
    assert "'y' of the engine is not what its operators give" in check.detail
    assert not found.passed


def test_an_operator_that_is_wrong_on_what_it_is_given_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tires(Emulator):
        """Right as long as operators are checked alone, and in the engine's own run."""

        done = 0

        def launch(self, launch: Any) -> None:
            super().launch(launch)
            self.done += 1
            if self.done == 15:  # 6 alone, 6 of the engine, 3 in turn
                output = launch.arguments[-1].address
                self.write(output, self.read(output, 4) ^ 0x40)

    path = save_silent(tmp_path / "model.onnx", AMPLIFIES)
    bundle = optimize(path, path.with_suffix(".plan"), target="h200", check="off")
    lowered = lower_model(path, {}, bundle.plan.precision)
    proof = prove_passes(lowered, Scope(seeds=1), silent)
    (check,) = in_turn(verify(bundle, proof, Tires(), silent))
    assert check.outcome is Outcome.FAILED
    third = bundle.plan.steps[2].operator.name
    assert check.detail.startswith(f"{third}: 1 of 16 elements: [")


@pytest.mark.parametrize(
    ("libraries", "on_cpu", "executed"),
    [(0, False, True), (1, False, False), (1, True, True), (3, False, False)],
)
def test_a_library_may_add_in_another_order(
    tmp_path: Path, libraries: int, on_cpu: bool, executed: bool
) -> None:
    path = save_silent(tmp_path / "model.onnx", AMPLIFIES)
    bundle = optimize(path, path.with_suffix(".plan"), target="h200", check="off")
    assert len(bundle.plan.steps) > 3
    candidate = library_call((), version="9.19.0")
    first = [replace(step, candidate=candidate) for step in bundle.plan.steps[:libraries]]
    steps = (*first, *bundle.plan.steps[libraries:])
    engine: Any = SimpleNamespace(device=SimpleNamespace(executes_source=on_cpu))
    changed = replace(bundle, plan=replace(bundle.plan, steps=steps))
    assert executes_all(changed, engine) is executed
