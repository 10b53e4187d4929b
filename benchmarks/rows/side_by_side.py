"""Whole engines, and what they are compared with, timed in turns in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from subjects.served_engine import Repeated

from wpk.backends import open_gpu
from wpk.device import Patience, Subject, Timing, time_side_by_side
from wpk.device.timing import Clock, repetitions_for
from wpk.engine import Engine, random_inputs
from wpk.execution import Replay
from wpk.plan.plan_file import read_plan
from wpk.trial import Regime

_PATIENCE = Patience(least=20, most=200, noise=0.002, seconds=2.0)

SAMPLE_SECONDS, MOST_STARTS = 2e-3, 50
"""Of one sample of starts: a hundred times what its edges cost."""


def time_plans(paths: Sequence[Path]) -> list[Timing]:
    """One inference after another of each plan, in turns."""
    with ExitStack() as held:
        device = held.enter_context(open_gpu())
        replays = {}
        for place, path in enumerate(paths):
            engine = held.enter_context(Engine(read_plan(path), device))
            engine.run(random_inputs(engine.plan, 0))
            replays[str(place)] = engine.bind().replay
        return list(time_starts(device, replays).values())


def time_starts(clock: Clock, subjects: Mapping[str, Replay]) -> dict[str, Timing]:
    """One start of each, in turns; a sample is a number of starts that follow each other.

    Raises:
        LaunchError: A kernel failed.
    """
    repeated = {}
    for name, once in subjects.items():
        once.replay()
        seconds = min(clock.seconds(once) for _ in range(3))
        repeated[name] = Repeated(once, repetitions_for(seconds, SAMPLE_SECONDS, 1, MOST_STARTS))
    timings = time_side_by_side(
        clock,
        [Subject(each, each.times, each.once.replay, Regime.WARM) for each in repeated.values()],
        _PATIENCE,
    )
    return dict(zip(repeated, timings, strict=True))
