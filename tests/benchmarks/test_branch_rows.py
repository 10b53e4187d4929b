"""Rows of branches, as far as they need no GPU."""

from pathlib import Path

import pytest
from rows.branches import NETWORKS, REPLAYS, differing
from rows.catalogue import all_rows
from subjects.replays import one_after_the_other

from wpk.emulator import Emulator
from wpk.engine import Engine, random_inputs
from wpk.execution import Replay
from wpk.plan.plan_file import read_plan


@pytest.mark.parametrize("faulty", [False, True])
def test_another_graph_is_compared_with_the_engines_own(small_plan: Path, faulty: bool) -> None:
    with Engine(read_plan(small_plan), Emulator()) as engine:
        inputs = [random_inputs(engine.plan, seed) for seed in (0, 1)]
        engine.run(inputs[0])
        steps = engine.bind().steps
        without_the_last = [work for step in steps[:-1] for work in step]
        replay: Replay = one_after_the_other(engine)
        if faulty:
            replay = engine.device.capture(without_the_last)
        assert differing(engine, replay, inputs) == (REPLAYS if faulty else 0)


def test_each_network_is_measured_in_16_bits_and_in_fp32() -> None:
    names = {name for name in all_rows() if name.startswith("branches.")}
    assert names == {f"branches.{n}.{p}" for n in NETWORKS for p in ("fp16", "fp32")}
