"""Engines whose branches run in any order that their predecessors allow; faults in that order are seen."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.networks.branching import Shuffled, write_branching

import wpk.plan.order
from wpk.emulator import Emulator
from wpk.engine import Engine, random_inputs
from wpk.lowering.program import Value
from wpk.pipeline import optimize
from wpk.plan.binding import order_of, pieces
from wpk.plan.order import Order
from wpk.plan.plan import Plan, PlanBundle, Step
from wpk.plan.plan_file import read_plan

pytestmark = pytest.mark.usefixtures("warm_without_cubins")

DRAWS = 12


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> PlanBundle:
    folder = tmp_path_factory.mktemp("branching")
    model = write_branching(folder / "branching.onnx")
    optimize(model, folder / "branching.plan", target="h200", precision="fp16", check="off")
    return read_plan(folder / "branching.plan")


def results(bundle: PlanBundle, draws: int) -> tuple[list[NDArray[np.generic]], set[object]]:
    """The output of two batches in each of several orders, and those orders."""
    outputs, orders = [], set()
    for seed in range(draws):
        device = Shuffled(seed)
        with Engine(bundle, device) as engine:
            for batch in (1, 3):
                inputs = random_inputs(engine.plan, batch, {"batch": batch})
                outputs.append(engine.run(inputs)["y"])
        orders |= set(device.drawn)
    return outputs, orders


def differing(outputs: list[NDArray[np.generic]], expected: list[NDArray[np.generic]]) -> int:
    pairs = zip(outputs, expected * (len(outputs) // 2), strict=True)
    return sum(not np.array_equal(one, other) for one, other in pairs)


@pytest.fixture(scope="module")
def expected(bundle: PlanBundle) -> list[NDArray[np.generic]]:
    """The output of two batches, one step after the other."""
    plan = bundle.plan
    with Engine(bundle, Emulator()) as engine:
        return [engine.run(random_inputs(plan, n, {"batch": n}))["y"] for n in (1, 3)]


def test_every_order_gives_the_same(
    bundle: PlanBundle, expected: list[NDArray[np.generic]]
) -> None:
    outputs, orders = results(bundle, DRAWS)
    assert len(orders) > DRAWS // 2
    assert differing(outputs, expected) == 0
    assert all(np.isfinite(y).all() for y in expected)


def test_a_join_that_does_not_wait_is_seen(
    bundle: PlanBundle,
    expected: list[NDArray[np.generic]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The parts of a concatenation are taken for apart from the whole of it."""
    plan = bundle.plan
    (whole,) = {name for step in plan.steps for name in step.inputs if _parts(plan, name) > 2}
    truly = wpk.plan.order.may_overlap

    def wrong(one: Value, other: Value) -> bool:
        return whole not in (one.name, other.name) and truly(one, other)

    monkeypatch.setattr(wpk.plan.order, "may_overlap", wrong)
    outputs, _ = results(bundle, DRAWS)
    assert differing(outputs, expected) > 0


def test_memory_that_is_shared_as_in_a_chain_is_seen(
    bundle: PlanBundle,
    expected: list[NDArray[np.generic]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Order, "all_before", lambda _, step: (1 << step) - 1)
    outputs, _ = results(bundle, DRAWS)
    assert differing(outputs, expected) > 0


def scratch(step: Step, dims: Mapping[str, int]) -> int:
    """Of a different size for each step."""
    return dims["batch"] * 100 * (1 + len(step.operator.inputs)) + int(step.operator.name[-1])


def test_steps_that_may_run_at_once_have_scratch_memory_of_their_own(bundle: PlanBundle) -> None:
    plan, dims = bundle.plan, {"batch": 2}
    order = order_of(plan)
    found = pieces(plan, order, dims, scratch)
    ends = [found.offsets[n] + scratch(step, dims) for n, step in enumerate(plan.steps)]
    assert max(ends) <= found.bytes
    together = shared = 0
    for one, other in combinations(range(len(plan.steps)), 2):
        apart = ends[one] <= found.offsets[other] or ends[other] <= found.offsets[one]
        assert apart or order.ordered(one, other)
        together += not order.ordered(one, other)
        shared += not apart
    assert together
    assert shared


def _parts(plan: Plan, name: str) -> int:
    """Steps that write into a value that none of them writes whole."""
    if name not in plan.values:
        return 0
    written = [n for step in plan.steps for n in step.operator.outputs]
    inside = [n for n in written if plan.values[n].buffer == plan.values[name].buffer]
    return 0 if name in written else len(inside)
