"""What a plan is bound to is made once, kept, and given back."""

from __future__ import annotations

from pathlib import Path

from support.devices.stream_device import Accountant

from wpk.engine import Engine, random_inputs
from wpk.plan.plan_file import read_plan


def test_a_size_that_was_seen_is_not_captured_again(small_plan: Path) -> None:
    device = Accountant()
    with Engine(read_plan(small_plan), device) as engine:
        for batch in (4, 1, 4, 1, 3):
            engine.run(random_inputs(engine.plan, 0, {"batch": batch}))
        assert device.captured == 3


def test_a_larger_size_moves_the_arena_and_all_sizes_still_run(small_plan: Path) -> None:
    device = Accountant()
    with Engine(read_plan(small_plan), device) as engine:
        first = engine.run(random_inputs(engine.plan, 0))["y"]
        held = len(device.held)
        engine.run(random_inputs(engine.plan, 0, {"batch": 5}))
        assert len(device.held) == held
        again = engine.run(random_inputs(engine.plan, 0))["y"]
        assert device.captured == 3
    assert (first == again).all()


def test_many_sizes_do_not_pile_up(small_plan: Path) -> None:
    device = Accountant()
    with Engine(read_plan(small_plan), device) as engine:
        for batch in range(20, 0, -1):
            engine.bind({"batch": batch})
        kept = engine.bind({"batch": 1})
        assert engine.bind({"batch": 1}) is kept
        captured = device.captured
        engine.bind({"batch": 20})
        assert device.captured == captured + 1


def test_closing_gives_all_memory_back(small_plan: Path) -> None:
    device = Accountant()
    with Engine(read_plan(small_plan), device) as engine:
        engine.run(random_inputs(engine.plan, 0))
        assert device.held
    assert not device.held
