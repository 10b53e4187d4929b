"""What it brings that operators run at the same time which need not wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rows.base import Context, Outcome, Row, microseconds
from rows.engines import static_plan
from rows.side_by_side import time_starts
from wpk.engine.engine import Engine
from wpk.engine.inputs import random_inputs
from wpk.engine.placement import footprint
from wpk.execution import Replay
from wpk.libraries.gpu import GpuDevice
from wpk.plans.plan_file import read_plan

NETWORKS = {
    "inception_v3": "tv_inception_v3.dynamo",
    "resnet18": "tv_resnet18.dynamo",
    "resnet50": "tv_resnet50.dynamo",
}

INPUTS, REPLAYS = 2, 60

ALLOWED = 1.01
"""Times what the steps take one after the other."""

_POISON = 255

Arrays = Mapping[str, NDArray[np.generic]]


def rows() -> list[Row]:
    """Of each network with branches, in 16 bits and in strict fp32."""
    claim = "branches at the same time give the same to the bit, and take no longer than in turn"
    return [
        Row(f"branches.{name}.{precision}", claim, partial(_measure, name, precision))
        for name in NETWORKS
        for precision in ("fp16", "fp32")
    ]


def _measure(name: str, precision: str, context: Context) -> Outcome:
    _, plan = static_plan(NETWORKS[name], context, precision)
    with GpuDevice() as device, Engine(read_plan(plan), device) as engine:
        inputs = [random_inputs(engine.plan, seed) for seed in range(INPUTS)]
        engine.run(inputs[0])
        in_turn = one_after_the_other(engine)
        wrong = differing(engine, in_turn, inputs)
        timings = time_starts(device, {"in turn": in_turn, "branches": engine.bind().replay})
    turn, branches = (timings[each].median for each in ("in turn", "branches"))
    figures: dict[str, Any] = {"replays": REPLAYS, "wrong": wrong}
    for each, timing in timings.items():
        low, high = timing.band
        figures[each] = {"seconds": timing.median, "low_seconds": low, "high_seconds": high}
    summary = (
        f"in turn {microseconds(turn)}, branches {microseconds(branches)}: {turn / branches:.2f} "
        f"times as fast, {wrong} of {REPLAYS} differ"
    )
    return Outcome(not wrong and branches <= ALLOWED * turn, summary, figures)


def one_after_the_other(engine: Engine) -> Replay:
    """An engine's steps as a graph in which each follows the one in front."""
    return engine.device.capture([work for step in engine.bind().steps for work in step])


def differing(engine: Engine, replay: Replay, inputs: Sequence[Arrays]) -> int:
    """How many of `REPLAYS` give other outputs than the engine's own graph, on inputs in turn."""
    bound, device, plan = engine.bind(), engine.device, engine.plan
    places = [
        (bound.address(port.name), footprint(plan.values[port.name], plan.free))
        for port in plan.outputs
    ]

    def outputs_of(once: Replay) -> list[bytes]:
        for address, size in places:
            device.fill(address, size, _POISON)
        once.replay()
        return [device.read(address, size).tobytes() for address, size in places]

    count = 0
    for turn in range(REPLAYS):
        engine.run(inputs[turn % len(inputs)])  # leaves the input where both graphs read it
        count += outputs_of(bound.replay) != outputs_of(replay)
    return count
