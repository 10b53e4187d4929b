"""What it brings that operators run at the same time which need not wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from subjects.replays import Arrays, one_after_the_other, outputs_of

from rows.base import Context, Outcome, Row, microseconds
from rows.engines import static_plan
from rows.networks import Median
from rows.side_by_side import time_starts
from wpk.backends import open_gpu
from wpk.engine import Engine, random_inputs
from wpk.execution import Replay
from wpk.plan.plan_file import read_plan

NETWORKS = ("inception_v3", "resnet18", "resnet50")

INPUTS, REPLAYS = 2, 60

ALLOWED = 1.01
"""Times what the steps take one after the other."""


def rows() -> list[Row]:
    """Of each network with branches, in 16 bits and in strict fp32."""
    claim = "branches at the same time give the same to the bit, and take no longer than in turn"
    return [
        Row(f"branches.{name}.{precision}", claim, partial(_measure, name, precision))
        for name in NETWORKS
        for precision in ("fp16", "fp32")
    ]


def _measure(name: str, precision: str, context: Context) -> Outcome:
    _, plan = static_plan(name, context, precision)
    with open_gpu() as device, Engine(read_plan(plan), device) as engine:
        inputs = [random_inputs(engine.plan, seed) for seed in range(INPUTS)]
        engine.run(inputs[0])
        in_turn = one_after_the_other(engine)
        wrong = differing(engine, in_turn, inputs)
        timings = time_starts(device, {"in turn": in_turn, "branches": engine.bind().replay})
    times = {each: Median.of(timing.seconds) for each, timing in timings.items()}
    turn, branches = (times[each].median_seconds for each in ("in turn", "branches"))
    figures = {
        "replays": REPLAYS,
        "wrong": wrong,
        "times": {each: asdict(median) for each, median in times.items()},
    }
    summary = (
        f"in turn {microseconds(turn)}, branches {microseconds(branches)}: {turn / branches:.2f} "
        f"times as fast, {wrong} of {REPLAYS} differ"
    )
    return Outcome(not wrong and branches <= ALLOWED * turn, summary, figures)


def differing(engine: Engine, replay: Replay, inputs: Sequence[Arrays]) -> int:
    """How many of `REPLAYS` give other outputs than the engine's own graph, on inputs in turn."""
    own, others = (
        outputs_of(engine, each, inputs, REPLAYS) for each in (engine.bind().replay, replay)
    )
    return sum(one != other for one, other in zip(own, others, strict=True))
