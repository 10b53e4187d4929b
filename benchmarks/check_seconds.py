"""What the checks of a network take of its host: seconds, page faults and memory, without a GPU.

    python benchmarks/check_seconds.py vit --precision fp16 --batch 32 --first 9
    python benchmarks/check_seconds.py model.onnx --cores 1 --phase operators --output seconds.json

Three phases are measured, by themselves: the proof of the passes; the references that trials are judged by, with the
quick check of a first trial; and the check of every operator. What no GPU computes here is the reference itself,
rounded to memory. Then one element of it is moved by twice what it may differ by, which must be reported, else the
benchmark fails. Operators come in the order of their CPU seconds, the worst first.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

PHASES = ("passes", "references", "operators")


def on_cores(count: int) -> None:
    """Begin anew on so many cores, unless this process has no more: libraries count them when they are loaded.

    Raises:
        SystemExit: There are fewer.
    """
    own = sorted(os.sched_getaffinity(0))
    if count > len(own):
        raise SystemExit(f"--cores {count}: this process may use {len(own)}")
    if count < len(own):
        os.sched_setaffinity(0, own[:count])
        os.execv(sys.executable, sys.orig_argv)


def lowered_model(network: str, precision: str, batch: int) -> Any:
    """A file's model, or a family's of the zoo, as passes and partition leave it.

    Raises:
        SystemExit: There is neither.
    """
    from wpk.dtypes import Precision
    from wpk.lowering.lowered_model import Source
    from wpk.lowering.model import ModelForms

    is_file = Path(network).is_file()
    with nullcontext("") if is_file else tempfile.TemporaryDirectory() as folder:
        path = Path(network) if is_file else _exported(network, batch, Path(folder))
        source = Source(path, {}, Precision(precision), ())
        return ModelForms(source, fallback=True, driven=True).lowered()


def _exported(family: str, batch: int, folder: Path) -> Path:
    from zoo.catalogue import find
    from zoo.exporting import export

    try:
        architecture = find(family).architecture
    except KeyError:
        raise SystemExit(f"neither a file nor a network of the zoo is called {family}") from None
    export(architecture, batch, folder / "model.onnx")
    return folder / "model.onnx"


def shown(phases: Sequence[Any], most: int) -> str:
    """A table for each phase."""
    from wpk.report import format_table

    parts = []
    for phase in phases:
        heading = [
            phase.name,
            "user s",
            "system s",
            "wall s",
            "page faults",
            "reference",
            "judging",
        ]
        worst = sorted(phase.rows, key=lambda row: -row.cost.cpu)
        sums = [sum(getattr(row, part).cpu for row in worst) for part in ("reference", "judging")]
        cells = [[phase.words, *_cells(phase.cost), *(f"{each:.2f}" for each in sums)]]
        for row in worst[:most]:
            own = [f"{each.cpu:.2f}" for each in (row.reference, row.judging)]
            cells.append([row.name, *_cells(row.cost), *own])
        parts.append(format_table(heading, cells))
    return "\n\n".join(parts)


def _cells(cost: Any) -> list[str]:
    return [*(f"{each:.2f}" for each in (cost.user, cost.system, cost.wall)), str(cost.faults)]


def main() -> int:
    """Measure the checks of one network."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("network", help="an ONNX file, or a family of the zoo, which takes PyTorch")
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--batch", type=int, default=1, help="of a family")
    parser.add_argument("--first", type=int, help="judge no more than the first so many operators")
    parser.add_argument("--cores", type=int, help="use no more than so many")
    parser.add_argument("--phase", choices=PHASES, action="append", help="all by default")
    parser.add_argument("--rows", type=int, default=20, help="operators to print of each phase")
    parser.add_argument("--output", type=Path, help="a file for all numbers, as JSON")
    options = parser.parse_args()
    if options.cores is not None:
        on_cores(options.cores)

    from subjects.host_checks import measured  # behind the choice of cores: it loads NumPy

    lowered = lowered_model(options.network, options.precision, options.batch)
    phases = [measured(name, lowered, options.first) for name in options.phase or PHASES]
    print(shown(phases, options.rows))
    if options.output is not None:
        found = {"cores": len(os.sched_getaffinity(0)), "phases": [asdict(each) for each in phases]}
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
