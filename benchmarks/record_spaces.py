"""Record parts of networks' schedule spaces on this machine's GPUs, as lines that studies replay.

    python benchmarks/record_spaces.py --output FOLDER --gpus 2 --seconds 540

Each GPU records problems of its own, with an equal part of the cores, and writes FOLDER/spaces-N.jsonl line by
line. What FOLDER holds already is not measured again. After so many seconds nothing new begins; what is
recorded first is what studies need most (`spaces.recorder`), so that a part of it is worth having.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from rows.machine import machine
from rows.spread import Seat, seats
from spaces.line_file import cut_to_whole_lines, read_lines
from spaces.recorder import Recorder, gpu_opener, shares

_TIMING_CORES = 2
"""Of a GPU's part of the cores, those that do not compile."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record; exit code 1 where a GPU's process failed."""
    options = _parser().parse_args(arguments)
    end = time.monotonic() + options.seconds
    options.output.mkdir(parents=True, exist_ok=True)
    about = {"date": datetime.now(UTC).date().isoformat(), "commit": options.commit, **machine()}
    asked = f"--output FOLDER --gpus {options.gpus} --seconds {options.seconds:g}"
    text = json.dumps(about | {"command": f"benchmarks/record_spaces.py {asked}"}, indent=1)
    (options.output / "machine.json").write_text(text + "\n", encoding="utf-8")
    # Not forked: a child must not inherit a parent's threads, and each opens a GPU of its own.
    spawn = multiprocessing.get_context("spawn")
    places = seats(range(options.gpus))
    parts = zip(places, shares(options.gpus), strict=True)
    processes = [
        spawn.Process(target=record, args=(seat, tiers, options.output, end))
        for seat, tiers in parts
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return int(any(process.exitcode for process in processes))


def record(seat: Seat, tiers: Sequence[Sequence[str]], folder: Path, end: float) -> None:
    """Record some problems on one GPU, in a process of its own."""
    os.sched_setaffinity(0, seat.cpus)
    ordinal = seat.gpu or 0
    files = sorted(folder.glob("spaces-*.jsonl"))
    known = read_lines(files)
    workers = max(1, len(seat.cpus) - _TIMING_CORES)
    path = folder / f"spaces-{ordinal}.jsonl"
    if path in files:
        cut_to_whole_lines(path)
    with path.open("a", encoding="utf-8") as output:
        Recorder(output, known, end, gpu_opener(ordinal)).record(tiers, workers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="folder of the records")
    parser.add_argument("--gpus", type=int, default=1, help="GPUs to use")
    parser.add_argument(
        "--seconds", type=float, default=540.0, help="after which nothing new begins"
    )
    parser.add_argument("--commit", default="unknown", help="of this repository, for the record")
    return parser


if __name__ == "__main__":
    sys.exit(main())
