"""List the GPUs that wpk knows, or show what it knows of one.

Another GPU is described by a file, which --target takes like a name: JSON or TOML, with the keys that
--json prints. A file may hold only what differs from a known target, which it names as its base.
docs/targets.md has every key with its unit.

Examples:
    wpk targets
    wpk targets t4
    wpk targets rtx3080 --json > rtx3080ti.json
"""

import argparse
import json
from typing import TYPE_CHECKING

from wpk.cli.say import say
from wpk.errors import TargetError

if TYPE_CHECKING:
    from wpk.report import Block
    from wpk.targets import Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="a target, its sm_XY, or a target file: every parameter with its source",
    )
    parser.add_argument(
        "--json", action="store_true", help="every parameter; of one target: a target file"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the table, or one target."""
    from wpk.targets import TARGETS, as_file, named_target

    if arguments.name is not None:
        target = named_target(arguments.name)
        if arguments.json:
            print(json.dumps(as_file(target), indent=1))
        else:
            say(*_parameters(target))
    elif arguments.json:
        print(json.dumps([as_file(target) for target in TARGETS], indent=1))
    else:
        say(_overview())
    return 0


def _overview() -> "Block":
    from wpk.report import Table
    from wpk.targets import TARGETS

    rows = [
        [
            target.name,
            target.arch,
            target.description,
            target.sm_count,
            f"{target.peak_ordinary / 1e12:.1f}",
            f"{target.peak_double / 1e12:.2f}",
            f"{target.global_bandwidth / 1e12:.2f}",
            _precisions(target),
        ]
        for target in TARGETS
    ]
    header = ["target", "arch", "GPU", "SMs", "fp32 TFLOP/s", "fp64", "TB/s", "compiles for"]
    return Table(header, rows, ("SMs", "TB/s", "fp32 TFLOP/s", "fp64"))


def _parameters(target: "Target") -> "tuple[Block, Block]":
    from wpk.report import Table
    from wpk.targets import as_file

    described = as_file(target)
    sources = described.pop("sources")
    rows = [
        [key, _shown(value), sources.get(key, "")]
        for key, value in described.items()
        if key != "peak_tensor"
    ]
    rows += [
        [f"peak_tensor.{precision}", _shown(peak), sources.get("peak_tensor", "")]
        for precision, peak in described["peak_tensor"].items()
    ]
    return Table(["parameter", "value", "source"], rows), f"compiles for: {_precisions(target)}"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return ".".join(map(str, value)) if isinstance(value, list) else str(value)


def _precisions(target: "Target") -> str:
    from wpk.dtypes import ASKED
    from wpk.targets import require_compilable, why_precision_unsupported

    try:
        require_compilable(target)
    except TargetError:
        return "(models only)"
    return " ".join(p for p in ASKED if why_precision_unsupported(target, p) is None)
