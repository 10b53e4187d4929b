"""What a plan is checked on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wpk.checks.scope import SEEDS, Scope, require_inputs, rounds, scope_of
from wpk.errors import EngineError
from wpk.plan.plan import CheckMode, Plan
from wpk.plan.plan_file import read_plan


@pytest.fixture
def plan(small_plan: Path) -> Plan:
    return read_plan(small_plan).plan


def names(plan: Plan, scope: Scope) -> list[list[str]]:
    return [[sample.name for sample in each.samples] for each in rounds(plan, scope, (1, 3))]


def given(batch: int, value: float = 0.5) -> dict[str, np.ndarray]:
    return {"x": np.full((batch, 3, 9, 7), value, np.float32)}


def test_drawn_inputs_at_each_size_and_then_those_given(plan: Plan) -> None:
    found = list(
        rounds(plan, Scope(seeds=2, given=[given(5), given(3)]), ({"batch": 1}, {"batch": 3}))
    )
    assert [[sample.name for sample in each.samples] for each in found] == [
        ["seed 0, batch 1", "seed 1, batch 1"],
        ["seed 0, batch 3"],
        ["given inputs 1"],
        ["given inputs 2"],
    ]
    assert [each.dims["batch"] for each in found] == [1, 3, 5, 3]
    assert all(s.arrays["x"].shape[0] == r.dims["batch"] for r in found for s in r.samples)
    assert (found[2].samples[0].arrays["x"] == 0.5).all()
    assert not (found[0].samples[0].arrays["x"] == found[0].samples[1].arrays["x"]).any()


def test_quick_means_the_tuned_size_one_drawn_input_and_those_given(plan: Plan) -> None:
    scope = scope_of("quick", [given(2)])
    assert scope is not None
    assert names(plan, scope) == [["seed 0, batch 1"], ["given inputs 1"]]
    assert scope.mode is CheckMode.QUICK


def test_a_plan_without_free_dimensions_has_one_size(plan: Plan) -> None:
    port = replace(plan.inputs[0], shape=(2, 3, 9, 7))
    fixed = replace(plan, free={}, inputs=(port,))
    assert names(fixed, Scope()) == [[f"seed {seed}" for seed in range(SEEDS)]]


def test_modes_are_three_words() -> None:
    assert scope_of("off") is None
    assert scope_of(CheckMode.ON) == Scope()
    for other in ("yes", True, False, ""):
        with pytest.raises(EngineError, match="expected one of on, quick, off"):
            scope_of(other)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="nothing is checked"):
        scope_of("off", [given(1)])


def test_given_inputs_must_fit(plan: Plan) -> None:
    require_inputs([given(1), given(9)], plan.inputs)
    wrong = {"x": np.zeros((1, 3, 9, 6), np.float32)}
    with pytest.raises(EngineError, match="has shape"):
        require_inputs([given(1), wrong], plan.inputs)
    with pytest.raises(EngineError, match="missing"):
        require_inputs([{}], plan.inputs)
    with pytest.raises(EngineError, match="has type"):
        require_inputs([{"x": given(1)["x"].astype(np.float64)}], plan.inputs)


@pytest.mark.parametrize("wrong", [-8, 7])
def test_given_indices_must_lie_in_the_models_tables(plan: Plan, wrong: int) -> None:
    port = replace(
        plan.inputs[0], dtype=type(plan.inputs[0].dtype)("int64"), shape=(3,), draw_below=7
    )
    require_inputs([{"x": np.array([-7, 0, 6])}], [port])
    with pytest.raises(EngineError, match="the model's tables take -7 to 6"):
        require_inputs([{"x": np.array([0, wrong, 1])}], [port])
