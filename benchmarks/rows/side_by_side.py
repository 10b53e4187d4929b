"""Whole engines timed in turns in one process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from wpk.device.timing import Patience, Subject, Timing, time_side_by_side
from wpk.engine.engine import Engine
from wpk.engine.inputs import random_inputs
from wpk.libraries.gpu import GpuDevice
from wpk.plans.plan_file import read_plan
from wpk.trial import Regime

_PATIENCE = Patience(least=50, most=500, noise=0.002, seconds=2.0)


def time_plans(paths: Sequence[Path]) -> list[Timing]:
    """One inference after another of each plan, in turns."""
    with ExitStack() as held:
        device = held.enter_context(GpuDevice())
        subjects = []
        for path in paths:
            engine = held.enter_context(Engine(read_plan(path), device))
            engine.run(random_inputs(engine.plan, 0))
            replay = engine.bind().replay
            subjects.append(Subject(replay, 1, replay.replay, Regime.WARM))
        return time_side_by_side(device, subjects, _PATIENCE)
