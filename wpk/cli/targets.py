"""List the GPUs that wpk knows.

Example:
    wpk targets
"""

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING

from wpk.cli.say import say
from wpk.errors import TargetError

if TYPE_CHECKING:
    from wpk.targets import Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--json", action="store_true", help="every parameter, with its source")


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    from wpk.report import Table
    from wpk.targets import TARGETS

    if arguments.json:
        print(json.dumps([dataclasses.asdict(target) for target in TARGETS], indent=1))
        return 0
    rows = [
        [
            target.name,
            target.arch,
            target.description,
            target.sm_count,
            f"{target.peak_ordinary / 1e12:.1f}",
            f"{target.global_bandwidth / 1e12:.2f}",
            _precisions(target),
        ]
        for target in TARGETS
    ]
    header = ["target", "arch", "GPU", "SMs", "fp32 TFLOP/s", "TB/s", "compiles for"]
    say(Table(header, rows, ("SMs", "TB/s", "fp32 TFLOP/s")))
    return 0


def _precisions(target: "Target") -> str:
    from wpk.dtypes import Precision
    from wpk.targets import require_compilable, why_precision_unsupported

    try:
        require_compilable(target)
    except TargetError:
        return "(models only)"
    return " ".join(p for p in Precision if why_precision_unsupported(target, p) is None)
