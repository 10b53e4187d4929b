"""Time a plan on a GPU: the whole engine, and every operator.

The engine's time is that of one CUDA graph between events on the GPU, one inference after another;
`started and awaited` is what the clock of a caller with arrays on the GPU sees. Operators are timed
alone, their operands in L2.

Example:
    wpk bench resnet18.plan --json
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from wpk.cli.say import say
from wpk.cli.usage import UsageError, add_trust
from wpk.report import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wpk.commands import Benchmark
    from wpk.engine import EngineTimes
    from wpk.report import Block


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument(
        "--device",
        choices=("gpu", "cpu"),
        default="gpu",
        help="gpu only: the emulator's times would say nothing about a GPU",
    )
    add_trust(parser)
    parser.add_argument("--json", action="store_true", help="all numbers, in seconds")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print."""
    from wpk.commands import bench

    if arguments.device != "gpu":
        raise UsageError(
            "wpk bench measures on a GPU: the emulator's times would say nothing about one",
            fix="wpk run PLAN --device cpu executes the plan on the CPU; wpk inspect PLAN has estimates",
        )
    found = bench(
        arguments.plan, trust=arguments.trust, progress=ProgressLine(quiet=arguments.quiet)
    )
    if arguments.json:
        print(json.dumps(_data(found), indent=1))
    else:
        say(*_tables(found))
    return 0


def _tables(found: "Benchmark") -> "list[Block]":
    from wpk.device import quantile
    from wpk.report import Facts, Table
    from wpk.report.plans import distant_lines, distant_operators, launch_floor

    plan, times = found.plan, found.times
    rows = []
    for step in plan.steps:
        timing, evidence = times.operators[step.operator.name], step.evidence
        cells = (evidence.bound_seconds, evidence.estimate_seconds, timing.median)
        made_by = step.candidate.maker.name
        rows.append([step.operator.name, *map(_us, cells), f"±{timing.noise:.1%}", made_by])
    header = ["operator alone", "bound µs", "estimate µs", "median µs", "noise", "made by"]
    whole = [
        [name, *(_us(quantile(samples, part)) for part in (0.5, 0.99)), len(samples)]
        for name, samples in (
            ("on the GPU", times.engine.seconds),
            ("started and awaited", times.host),
        )
    ]
    medians = [times.operators[step.operator.name].median for step in plan.steps]
    distant = distant_operators(plan, medians)
    return [
        Table(header, rows, ("noise", "estimate µs", "bound µs")),
        Facts(distant_lines(distant, launch_floor(plan) * 1e6)),
        Table(["whole engine", "median µs", "p99 µs", "samples"], whole),
        *turn_sentences(times),
        f"measured on {found.device}, {plan.precision}, {plan.free or 'fixed sizes'}; {times.memory}",
    ]


def turn_sentences(times: "EngineTimes") -> list[str]:
    """What turns of loops cost, which the inputs decide the number of."""
    return [
        f"{name} took {count} turns on these inputs, {_us(times.operators[name].median / max(1, count))} µs each"
        for name, count in times.turns.items()
    ]


def _data(found: "Benchmark") -> dict[str, Any]:
    plan, times = found.plan, found.times
    return {
        "device": found.device,
        "driver": found.facts.driver,
        "cuda_driver_api": found.facts.cuda_api,
        "memory": {**asdict(times.memory), "total_bytes": times.memory.total_bytes},
        "model": plan.provenance.model,
        "precision": plan.precision.value,
        "free": plan.free,
        "engine": _numbers(times.engine.seconds),
        "started_and_awaited": _numbers(times.host),
        "turns": times.turns,
        "operators_alone": {n: _numbers(t.seconds) for n, t in times.operators.items()},
    }


def _numbers(seconds: "Sequence[float]") -> dict[str, Any]:
    from wpk.device import noise_band, quantile

    return {
        "median": median(seconds),
        "p99": quantile(seconds, 0.99),
        "band": noise_band(seconds),
        "seconds": list(seconds),
    }


def _us(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:.2f}"
