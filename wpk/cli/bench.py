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

from wpk.cli.progress import ProgressLine
from wpk.cli.say import say
from wpk.cli.usage import add_trust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wpk.device import CudaDevice
    from wpk.engine import EngineTimes
    from wpk.plan import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument(
        "--device",
        choices=("gpu",),
        default="gpu",
        help="where to measure; the emulator's times would say nothing about a GPU",
    )
    add_trust(parser)
    parser.add_argument("--json", action="store_true", help="all numbers, in seconds")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print."""
    from wpk.backends import open_gpu
    from wpk.engine import compare_machine_code, require_executable, time_engine
    from wpk.plan import read_plan

    bundle = read_plan(arguments.plan)
    with open_gpu() as device:
        if not arguments.trust:
            require_executable(compare_machine_code(bundle, ProgressLine()))
        times = time_engine(bundle, device)
        if arguments.json:
            print(json.dumps(_data(bundle.plan, times, device), indent=1))
        else:
            say(_tables(bundle.plan, times, device.name))
    return 0


def _tables(plan: "Plan", times: "EngineTimes", device: str) -> str:
    from wpk.device import quantile
    from wpk.report import format_table

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
    return "\n\n".join(
        (
            format_table(header, rows),
            format_table(["whole engine", "median µs", "p99 µs", "samples"], whole),
            f"measured on {device}, {plan.precision}, {plan.free or 'fixed sizes'}; {times.memory}",
        )
    )


def _data(plan: "Plan", times: "EngineTimes", device: "CudaDevice") -> dict[str, Any]:
    return {
        "device": device.name,
        "driver": device.facts.driver,
        "cuda_driver_api": device.facts.cuda_api,
        "memory": {**asdict(times.memory), "total_bytes": times.memory.total_bytes},
        "model": plan.provenance.model,
        "precision": plan.precision.value,
        "free": plan.free,
        "engine": _numbers(times.engine.seconds),
        "started_and_awaited": _numbers(times.host),
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
