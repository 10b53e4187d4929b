r"""Optimize graphs of real exporters, execute their engines, and compare them with ONNX Runtime.

    python benchmarks/exporter_study.py                             # the kept list
    python benchmarks/exporter_study.py --only 'hf_*' --seed 1
    python benchmarks/exporter_study.py --archive benchmarks/exporters/drawn.zip \
        --output benchmarks/results/exporters-drawn.json
    python benchmarks/exporter_study.py --device gpu --only 'tv_*' --output sample.json

Every graph has a process of its own, with a limit of time and memory, so that one that fails fails alone.
What became of it is written at once to a file of results, and beside it, as Markdown, to a table. The exit
code is 1 where an engine is missing or wrong, or where one for classification, or an encoder, has nodes that
ONNX Runtime executes. `benchmarks/export_graphs.py` writes the graphs, and draws others by a seed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from exporters import store
from rows.machine import checked_out
from rows.result_file import Record, ResultFile

OUTPUT = Path(__file__).parent / "results" / "exporters.json"
SECONDS = 600.0
MEMORY_BYTES = 12 << 30
KERNELS_ONLY = ("classification", "encoder")
_HEADERS = [
    "graph",
    "kind",
    "nodes",
    "operators by kernels",
    "nodes in fallback",
    "error",
    "seconds",
    "commit",
    "",
]


def main() -> int:
    """Judge the graphs; 0 where all is as it must be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--archive", type=Path, default=store.ARCHIVE)
    parser.add_argument("--only", default="*", metavar="GLOB")
    parser.add_argument("--seed", type=int, default=0, help="of weights and inputs")
    parser.add_argument(
        "--finalists",
        type=int,
        default=8,
        metavar="N",
        help="schedules of a problem to compile; 8 is what wpk compiles, 1 is faster",
    )
    parser.add_argument(
        "--device", choices=("cpu", "gpu"), default="cpu", help="what executes the engines"
    )
    parser.add_argument(
        "--limit", type=float, default=SECONDS, metavar="SECONDS", help="of a graph's process"
    )
    parser.add_argument("--commit", help="that is judged, where this is only a copy of it")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE.json")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        return _judge_here(options)
    results = ResultFile(options.output)
    commit = options.commit or checked_out()
    for name in fnmatch.filter(store.names(options.archive), options.only):
        record = _judged(name, options) | {"commit": commit}
        results.add(name, record)
        print("  ".join(_line(name, record)), flush=True)
        options.output.with_suffix(".md").write_text(table(results.records))
    print(summary(results.records))
    return 0 if all(is_as_it_must_be(each) for each in results.records.values()) else 1


def is_as_it_must_be(record: Record) -> bool:
    """Whether the engine is right, and of kernels alone where it must be."""
    alone = record["kind"] not in KERNELS_ONLY or not record["fallback"]
    return record["outcome"] == "right" and alone


def summary(records: dict[str, Record]) -> str:
    """How many graphs there are of each outcome, and the nodes in fallback."""
    outcomes = Counter(record["outcome"] for record in records.values())
    nodes = sum(record["nodes"] for record in records.values())
    handed = sum(len(record["fallback"]) for record in records.values())
    with_fallback = sum(bool(record["fallback"]) for record in records.values())
    words = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    return (
        f"{len(records)} graphs: {words}; ONNX Runtime executes nodes of {with_fallback} "
        f"({handed} of {nodes} nodes)"
    )


def table(records: dict[str, Record]) -> str:
    """The records as a page of Markdown."""
    rows = [_HEADERS, ["---"] * len(_HEADERS)]
    rows += [_line(name, record) for name, record in sorted(records.items())]
    head = f"# Graphs of real exporters\n\nWritten by `benchmarks/exporter_study.py`. {summary(records)}.\n\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _line(name: str, record: Record) -> list[str]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(record["fallback"]).items())
    handed = f"{len(record['fallback'])}: {kinds}" if kinds else "0"
    error = f"{record['error']:.1e}" if "error" in record else ""
    why = " ".join(record.get("why", "").split())[:300]
    outcome = f"{record['outcome']}: {why}" if why else record["outcome"]
    counts = [str(record["nodes"]), str(record["kernels"])]
    judged = [error, f"{record['seconds']:.0f}", record.get("commit", "older"), outcome]
    return [name, record["kind"], *counts, handed, *judged]


def _judged(name: str, options: argparse.Namespace) -> Record:
    began = time.monotonic()
    command = [sys.executable, __file__, "--here", name, "--archive", str(options.archive)]
    given = ["--seed", str(options.seed), "--finalists", str(options.finalists)]
    given += ["--device", options.device]
    _, facts = store.read(name, archive=options.archive)
    record: Record = {
        "family": facts.family,
        "kind": facts.kind,
        "nodes": 0,
        "kernels": 0,
        "fallback": [],
    }
    child = subprocess.Popen(
        [*command, *given],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_limit_memory if options.device == "cpu" else None,
    )
    try:
        said, told = child.communicate(timeout=options.limit)
        if child.returncode == 0:
            record |= json.loads(said.splitlines()[-1])
        else:
            last = (told.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
            record |= {"outcome": "crashed", "why": last, "traceback": told[-4000:]}
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        record |= {"outcome": "timed out", "why": f"longer than {options.limit:.0f} s"}
    return record | {"seconds": round(time.monotonic() - began, 1)}


def _limit_memory() -> None:
    """Of this process: what a driver of a GPU maps is no memory that is used, and is not limited."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _judge_here(options: argparse.Namespace) -> int:
    from exporters.judging import judge

    with tempfile.TemporaryDirectory() as folder:
        record = judge(
            options.here,
            options.archive,
            Path(folder),
            options.seed,
            options.finalists,
            options.device,
        )
    print(json.dumps(record))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
