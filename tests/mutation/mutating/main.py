"""Whether the tests of checks, plans, memory and costs notice small changes of the code.

    scripts/mutate --count 300 --seed 1 --out mutants.jsonl                     draw and try
    scripts/mutate --count 300 --seed 1 --shard 3/16 --out mutants-3.jsonl      a sixteenth of them
    scripts/mutate --summary mutants-*.jsonl                                    what all found

The same seed draws the same mutants from the same sources, on every machine. A run that was stopped
goes on where its file ends. mutmut and cosmic-ray were looked at: neither draws a sample by a seed or
cuts it into shards, and both mutate in place, which a package mapped from three folders, tests in
child processes and several workers at a time do not allow.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mutating.coverage import modules
from mutating.mutants import Mutant, mutants_of
from mutating.trial import BrokenTestsError, Copy, Limits, copied

ROOT = Path(__file__).resolve().parents[3]


def drawn(seed: int, count: int, only: str = "") -> list[Mutant]:
    """The mutants of a seed; ``only`` keeps those whose name holds it, after drawing."""
    everything = [mutant for module in modules(ROOT) for mutant in mutants_of(ROOT, module)]
    chosen = random.Random(seed).sample(everything, min(count, len(everything)))
    return [mutant for mutant in chosen if only in mutant.name]


def main(argv: Sequence[str] | None = None) -> int:
    """Try mutants, or sum up; 1 where tests fail without a mutant."""
    arguments = _arguments(argv)
    if arguments.summary:
        return _summary([record for path in arguments.summary for record in _records(path)])
    place, of = (int(part) for part in arguments.shard.split("/"))
    chosen = drawn(arguments.seed, arguments.count, arguments.only)[place::of]
    if arguments.list:
        for mutant in chosen:
            print(_line(asdict(mutant)))
        return 0
    done = {record["name"] for record in _records(arguments.out)}
    waiting = [mutant for mutant in chosen if mutant.name not in done]
    print(f"{len(chosen)} mutants, {len(chosen) - len(waiting)} tried already", flush=True)
    try:
        _try_all(waiting, arguments.jobs, arguments.out, wider=not arguments.nearest)
    except BrokenTestsError as error:
        print(error, file=sys.stderr)
        return 1
    return _summary(list(_records(arguments.out)))


def _try_all(waiting: Sequence[Mutant], jobs: int, out: Path, *, wider: bool) -> None:
    limits, copies = Limits(), SimpleQueue[Copy]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, out.open("a") as file:
        for copy in copied(ROOT, Path(folder), min(jobs, len(waiting))):
            copies.put(copy)

        def tried(mutant: Mutant) -> dict[str, Any]:
            copy = copies.get()
            try:
                outcome = copy.tried(mutant, limits, wider=wider)
            finally:
                copies.put(copy)
            return {**asdict(mutant), "name": mutant.name, **asdict(outcome)}

        with ThreadPoolExecutor(jobs) as pool:
            for each in as_completed([pool.submit(tried, mutant) for mutant in waiting]):
                record = each.result()
                file.write(json.dumps(record) + "\n")
                file.flush()
                print(_line(record), flush=True)


def _summary(records: Sequence[dict[str, Any]]) -> int:
    survivors = [record for record in records if not record["killed"]]
    killed = len(records) - len(survivors)
    print(f"\n{killed} of {len(records)} killed ({100 * killed / max(len(records), 1):.1f} %)")
    for record in sorted(survivors, key=lambda each: (each["path"], each["line"])):
        print(_line(record))
    return 0


def _records(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def _line(record: dict[str, Any]) -> str:
    state = {None: "", True: "killed    ", False: "SURVIVED  "}[record.get("killed")]
    change = f"{' '.join(record['old'].split())[:60]} -> {record['new'][:60]}"
    return f"{state}{record['path']}:{record['line']}: {change}    | {record['source']}"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard", default="0/1", help="the part to try, e.g. 3/16: from 0 to 15")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--only", default="", help="of those drawn, names that hold this")
    parser.add_argument("--nearest", action="store_true", help="ask only the tests of the module")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"), help="JSON lines")
    parser.add_argument("--list", action="store_true", help="print what is drawn, try nothing")
    parser.add_argument("--summary", type=Path, nargs="+", help="sum files up, try nothing")
    return parser.parse_args(argv)


if __name__ == "__main__":
    raise SystemExit(main())
