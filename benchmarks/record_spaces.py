"""Record parts of problems' schedule spaces on this machine's GPUs, as lines that studies and tests replay.

    python benchmarks/record_spaces.py --output FOLDER --gpus 2 --seconds 540
    python benchmarks/record_spaces.py --output FOLDER --problems large-batch vit.fp16.b32 --first 24 --random 24

Each GPU records problems of its own, with an equal part of the cores, and writes FOLDER/spaces-N.jsonl line by
line. What FOLDER holds already is not measured again. After so many seconds nothing new begins; what is
recorded first is what studies need most (`spaces.recorder`), so that a part of it is worth having.

Problems are the lists ``studies`` (by default) and ``large-batch``, networks of the zoo, or files of problems. Of each there
are recorded what production searches and a grid (`spaces.sampling`), or with ``--first`` what the models choose first
and a draw of the rest (`spaces.probing`), which is what models are judged and fitted by.

Passes, lowering and compiling need no GPU, and can be done before on another machine:

    python benchmarks/record_spaces.py --problems vit.fp16.b32 --models zoo --target h100 --prepare vit.json
    python benchmarks/record_spaces.py --problems vit.json --first 24 --random 24 --target h100 --kernels KERNELS --dry

The first writes the problems; the second compiles all that would be measured, says what spills or does not compile, and
how long measuring will take. Whoever then records with ``--kernels KERNELS`` compiles none of it again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from rows.machine import checked_out, machine
from rows.spread import Seat, seats
from spaces.dry_run import dry_run, gpu_seconds
from spaces.large_batch import LARGE_BATCH
from spaces.line_file import cut_to_whole_lines, read_lines
from spaces.of_networks import network_problems
from spaces.probing import Probe
from spaces.problem_file import read_problems, write_problems
from spaces.problems import TIERS
from spaces.recorder import Recorder, Sampling, Tier, gpu_opener, shares
from spaces.sampling import samples

from wpk.libraries import why_unknown
from wpk.report import format_table
from wpk.targets import find_target

_TIMING_CORES = 2
"""Of a GPU's part of the cores, those that do not compile."""


LISTS: dict[str, tuple[Tier, ...]] = {"studies": TIERS, "large-batch": (LARGE_BATCH,)}
"""Problems that are written down, by the name of their list."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record; exit code 1 where a GPU's process failed, or a kernel that would be measured does not compile."""
    options = _parser().parse_args(arguments)
    tiers = [tier for each in options.problems for tier in _tiers(each, options)]
    probe = Probe(options.first, options.random)
    sampling: Sampling = probe if options.first else samples
    if options.prepare is not None:
        write_problems(options.prepare, {name: p for tier in tiers for name, p in tier.items()})
        return 0
    if options.dry:
        return _dry(tiers, sampling, options)
    if options.output is None:
        raise SystemExit("--output FOLDER is missing; fix: give it, or --dry or --prepare")
    return _record_all(tiers, sampling, options)


def _tiers(text: str, options: argparse.Namespace) -> tuple[Tier, ...]:
    """The problems that a word of ``--problems`` stands for; without those that nobody could judge a result of."""
    if text in LISTS:
        return LISTS[text]
    is_file = text.endswith(".json")
    found = (
        read_problems(Path(text))
        if is_file
        else network_problems(text, options.models, find_target(options.target))
    )
    unknown = {name: why_unknown(problem) for name, problem in found.items()}
    for name, why in unknown.items():
        if why is not None:
            sys.stderr.write(f"{name} is left out: {why}\n")
    return ({name: problem for name, problem in found.items() if unknown[name] is None},)


def _dry(tiers: Sequence[Tier], sampling: Sampling, options: argparse.Namespace) -> int:
    """Compile all, and tell."""
    problems = {name: problem for tier in tiers for name, problem in tier.items()}
    target = find_target(options.target)
    with tempfile.TemporaryDirectory() as none:
        kernels = options.kernels or Path(none)
        found = dry_run(problems, target, sampling, kernels, options.workers)
    rows = [
        [each.name, *map(str, (each.schedules, len(each.faults))), *map(_rounded, each.seconds)]
        for each in found
    ]
    print(format_table(["problem", "schedules", "faults", "compiling", "GPU", "rounds"], rows))
    for each in found:
        for schedule, fault in each.faults.items():
            print(f"{each.name}: {schedule}: {fault}")
    ready, unready = gpu_seconds(found, options.cores)
    print(
        f"expected on a machine of {options.cores} cores: {ready:.0f} s, {unready:.0f} s without kernels"
    )
    return int(any(each.faults for each in found))


def _rounded(seconds: float) -> str:
    return f"{seconds:.1f}"


def _record_all(tiers: Sequence[Tier], sampling: Sampling, options: argparse.Namespace) -> int:
    end = time.monotonic() + options.seconds
    options.output.mkdir(parents=True, exist_ok=True)
    commit = options.commit or checked_out()
    about = {"date": datetime.now(UTC).date().isoformat(), "commit": commit, **machine()}
    asked = f"--output FOLDER --gpus {options.gpus} --seconds {options.seconds:g}"
    asked += f" --problems {' '.join(options.problems)}"
    asked += f" --first {options.first} --random {options.random}" if options.first else ""
    text = json.dumps(about | {"command": f"benchmarks/record_spaces.py {asked}"}, indent=1)
    (options.output / "machine.json").write_text(text + "\n", encoding="utf-8")
    # Not forked: a child must not inherit a parent's threads, and each opens a GPU of its own.
    spawn = multiprocessing.get_context("spawn")
    places = seats(range(options.gpus))
    parts = zip(places, shares(tiers, options.gpus), strict=True)
    how = options.output, end, sampling, commit, options.kernels
    processes = [spawn.Process(target=record, args=(seat, mine, *how)) for seat, mine in parts]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return int(any(process.exitcode for process in processes))


def record(
    seat: Seat,
    tiers: Sequence[Tier],
    folder: Path,
    end: float,
    sampling: Sampling,
    commit: str,
    kernels: Path | None,
) -> None:
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
        opener = gpu_opener(ordinal)
        Recorder(output, known, end, opener, sampling, commit, kernels).record(tiers, workers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, help="folder of the records")
    lists = ", ".join(LISTS)
    parser.add_argument(
        "--problems",
        nargs="+",
        default=["studies"],
        metavar="PROBLEMS",
        help=f"lists ({lists}), networks of the zoo (vit.fp16.b32), or files.json of problems",
    )
    parser.add_argument(
        "--first", type=int, default=0, help="schedules that the models choose first"
    )
    parser.add_argument("--random", type=int, default=0, help="others, with --first")
    parser.add_argument("--gpus", type=int, default=1, help="GPUs to use")
    parser.add_argument(
        "--seconds", type=float, default=540.0, help="after which nothing new begins"
    )
    parser.add_argument(
        "--commit", default="", help="of this repository, where this is a copy of it"
    )
    parser.add_argument("--kernels", type=Path, help="folder of compiled kernels, which is filled")
    parser.add_argument(
        "--models", type=Path, default=Path("models"), help="folder of networks' files"
    )
    parser.add_argument(
        "--target", default="h100", help="GPU that passes, --dry and --prepare are for"
    )
    parser.add_argument(
        "--prepare", type=Path, metavar="FILE.json", help="write the problems, no more"
    )
    parser.add_argument("--dry", action="store_true", help="compile all, measure nothing")
    parser.add_argument("--workers", type=int, help="processes of --dry that compile; one a core")
    parser.add_argument("--cores", type=int, default=16, help="of the GPU's machine, for --dry")
    return parser


if __name__ == "__main__":
    sys.exit(main())
