"""Graphs with branches: joins wait for all that meets there, and engines give what a chain gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from subjects.replays import one_after_the_other, outputs_of
from support.launches.slow_copies import PREDECESSORS, diamond
from support.networks.branching import write_branching

from wpk.device import CudaDevice, Patience, Subject, bindings, time_side_by_side
from wpk.device.graph import checked
from wpk.engine import Engine, random_inputs
from wpk.launch import EARLY_LAUNCH
from wpk.pipeline import optimize
from wpk.plan.order import Order
from wpk.plan.plan_file import read_plan
from wpk.trial import Regime

pytestmark = pytest.mark.gpu

WORDS, REPLAYS = 1 << 16, 30


def wrong(device: CudaDevice, predecessors: Sequence[Sequence[int]]) -> int:
    """How many replays on new words give other words somewhere."""
    bench = diamond(device, WORDS)
    graph = device.capture(bench.works, predecessors)
    count = 0
    for seed in range(REPLAYS):
        words = bench.set(device, seed)
        graph.replay()
        device.synchronize()
        count += not bench.right(device, words)
    return count


def test_a_join_waits_for_both_branches(hopper: CudaDevice) -> None:
    assert wrong(hopper, PREDECESSORS) == 0


@pytest.mark.parametrize("waited_for", [(3,), ()])
def test_a_branch_that_is_not_waited_for_is_seen(
    hopper: CudaDevice, waited_for: tuple[int, ...]
) -> None:
    """The right branch comes behind the left one here, which the join waits for, or not even that."""
    others = list(PREDECESSORS)
    others[4], others[5] = (2, 3), waited_for
    assert wrong(hopper, others)


def test_forks_and_joins_are_early_launches(
    hopper: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of their edges are programmatic; around a launch that is not early none is."""
    driver, seen = bindings(), []
    end = driver.cuStreamEndCapture

    def look(stream: object) -> object:
        status, graph = end(stream)
        answer = driver.cuGraphGetEdges(graph, 64)
        checked("read a graph", answer)
        _, _, _, data, count = answer
        seen.append(Counter(int(each.type) for each in data[:count]))
        return status, graph

    monkeypatch.setattr(driver, "cuStreamEndCapture", look)
    bench = diamond(hopper, WORDS)
    hopper.capture(bench.works, PREDECESSORS)
    plain = [replace(work, attributes=()) for work in bench.works]
    hopper.capture(plain, PREDECESSORS)
    edges = sum(len(each) for each in PREDECESSORS)
    assert seen == [Counter({1: edges}), Counter({0: edges})]
    assert all(EARLY_LAUNCH in work.attributes for work in bench.works)


@pytest.mark.timed
@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16"])
def test_an_engine_gives_what_its_steps_give_one_after_the_other(
    hopper: CudaDevice,
    tmp_path: Path,
    precision: str,
    record: Callable[[str, object], None],
) -> None:
    path = tmp_path / "branching.plan"
    model = write_branching(tmp_path / "branching.onnx")
    optimize(model, path, target="h200", precision=precision, check="off")
    with Engine(read_plan(path), hopper) as engine:
        for batch in (1, 3, 64):
            inputs = [random_inputs(engine.plan, seed, {"batch": batch}) for seed in (0, 1)]
            engine.run(inputs[0])
            dims = {"batch": batch}
            bound, chain = engine.bind(dims), one_after_the_other(engine, dims)
            expected = outputs_of(engine, chain, inputs, REPLAYS, dims)
            assert outputs_of(engine, bound.replay, inputs, REPLAYS, dims) == expected
            assert len(set(expected)) == 2
            subjects = [Subject(r, 1, r.replay, Regime.WARM) for r in (chain, bound.replay)]
            times = time_side_by_side(hopper, subjects, Patience(seconds=0.2))
            record(f"branching.{precision}.b{batch}", {"us": [t.median * 1e6 for t in times]})


def test_an_engine_without_an_order_is_seen(
    hopper: CudaDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "branching.plan"
    model = write_branching(tmp_path / "branching.onnx")
    optimize(model, path, target="h200", precision="fp16", check="off")
    bundle = read_plan(path)
    inputs = [random_inputs(bundle.plan, seed, {"batch": 64}) for seed in (0, 1)]
    with Engine(bundle, hopper) as engine:
        expected = [engine.run(each)["y"] for each in inputs]
    init = Order.__init__

    def none(self: Order, *arguments: object) -> None:
        init(self, *arguments)  # type: ignore[arg-type]
        self.predecessors = tuple(() for _ in self.steps)

    monkeypatch.setattr(Order, "__init__", none)
    with Engine(bundle, hopper) as engine:
        outputs = [engine.run(inputs[turn % 2])["y"] for turn in range(REPLAYS)]
    assert any(
        not np.array_equal(y, expected[turn % 2], equal_nan=True) for turn, y in enumerate(outputs)
    )
