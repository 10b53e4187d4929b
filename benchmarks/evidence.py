"""All that wpk claims of itself on a GPU, measured row by row on this machine.

    python benchmarks/evidence.py --list
    python benchmarks/evidence.py --only 'mixed.resnet18.*' --output results.json
    python benchmarks/evidence.py --gpu 0 1 2 3 --output results.json
    python benchmarks/evidence.py --merge here.json there.json --output results.json
    python benchmarks/evidence.py --only share --again --output results.json

Rows are begun in the order in which `--only` names them, those of one pattern in the order of `--list`.
A row takes at most 8 minutes and is written to the output as soon as it is measured; rows that are
there are not measured again, so an interrupted call goes on where it was. Rows that could not be
measured are tried again. Rows share a folder (`--store`) of compiled kernels, trials and networks.
With several GPUs each row has one of them to itself, and an equal part of the cores. Times are only
worth something where nobody else uses the machine. The row `share` is computed from the output's other
rows, without a GPU: again, once files were merged. Exit code 1 where a row fails or cannot be measured.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from rows.base import BUDGET, EARLIER, EFFORT, MOST_SECONDS, Context, Row, RowError
from rows.catalogue import all_rows
from rows.isolated import measure_apart
from rows.machine import checked_out, machine
from rows.result_file import Record, ResultFile
from rows.spread import Seat, seats, spread
from subjects.earlier import commit_id

from wpk.report import format_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"

INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, list or merge; return the exit code."""
    options = _parser().parse_args(arguments)
    rows = _asked_for(options.only)
    if options.list:
        print(format_table(["row", "shows"], [[row.name, row.claim] for row in rows.values()]))
        return 0
    results = ResultFile(options.output)
    if options.merge:
        results.merge(options.merge)
        return _tell(results, options.only)
    if not rows:
        raise SystemExit(f"no row matches {', '.join(options.only)}: see --list")
    unfinished = [r for r in rows.values() if options.again or not results.is_finished(r.name)]
    if unfinished:
        about = _about(options.commit, arguments)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            for row, record in _measured(unfinished, options, results):
                results.add(row.name, record | about)
        except KeyboardInterrupt:
            _say("interrupted; finished rows are kept")
            _tell(results, options.only)
            return INTERRUPTED
    return _tell(results, options.only)


def _measured(
    rows: Sequence[Row], options: argparse.Namespace, results: ResultFile
) -> Iterator[tuple[Row, Record]]:
    """Records as they come; rows that look at what others measured begin when those are kept."""
    for last in (False, True):
        stop = threading.Event()
        work = partial(measure, options, dict(results.records), stop)
        batch = [row for row in rows if row.is_last is last]
        for row, record in spread(batch, seats(options.gpu), work, stop):
            said = record.get("error") or _summary(record)
            _say(f"{row.name}: {_outcome(record)}, {said}")
            yield row, record


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # at once: rows on several GPUs speak at the same time


def measure(
    options: argparse.Namespace,
    records: Mapping[str, Record],
    stop: threading.Event,
    row: Row,
    seat: Seat,
) -> Record:
    """A row's record, without what it was measured with."""
    _say(f"{row.name} …")
    store = options.store.resolve()
    folder = store / "rows" / row.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    begun = time.monotonic()
    end = begun + MOST_SECONDS
    context = Context(
        store, folder, end, options.budget, options.effort, records, since=options.since
    )
    try:
        outcome = measure_apart(row, context, seat, stop)
        record: Record = {
            "passed": outcome.passed,
            "summary": outcome.summary,
            "figures": outcome.figures,
        }
    except RowError as error:
        record = {"error": str(error)}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return record | {
        "seconds": time.monotonic() - begun,
        "cpus": len(seat.cpus),
        "date": date,
    }


def _asked_for(patterns: Sequence[str]) -> dict[str, Row]:
    """Rows in the order of the patterns that name them first; those of one pattern in the catalogue's."""
    rows = all_rows()
    return {name: rows[name] for pattern in patterns for name in rows if fnmatch(name, pattern)}


def _wanted(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _about(commit: str | None, arguments: Sequence[str] | None) -> Record:
    given = sys.argv[1:] if arguments is None else arguments
    named = [Path(each).name if Path(each).is_absolute() else each for each in given]
    command = " ".join(["python", "benchmarks/evidence.py", *named])
    return {"machine": machine(), "command": command, "commit": commit or checked_out()}


def _tell(results: ResultFile, patterns: Sequence[str]) -> int:
    """Print what the file holds of the rows asked for; 1 where one of them did not pass."""
    held = {name: r for name, r in results.records.items() if _wanted(name, patterns)}
    order = {name: place for place, name in enumerate(all_rows())}
    table = [
        [name, _outcome(record), f"{record['seconds']:.0f}", _summary(record)]
        for name, record in sorted(held.items(), key=lambda item: order.get(item[0], len(order)))
    ]
    print(format_table(["row", "", "s", "measured"], table))
    passed = sum(bool(record.get("passed")) for record in held.values())
    print(f"\n{passed} of {len(held)} rows pass: {results.path}")
    return 0 if passed == len(held) else 1


def _outcome(record: Record) -> str:
    if "error" in record:
        return "ERROR"
    return "ok" if record["passed"] else "FAILED"


def _summary(record: Record) -> str:
    text: str = record["error"] if "error" in record else record["summary"]
    return text.splitlines()[-1] if text else ""


def _parser() -> argparse.ArgumentParser:
    about, _, more = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--list", action="store_true", help="print the rows, and measure nothing")
    add("--only", nargs="+", default=["*"], metavar="ROW", help="these, in this order; wildcards")
    add("--output", type=Path, default=RESULTS / "evidence.json", metavar="FILE.json")
    add("--store", type=Path, default=ROOT / "build" / "evidence", metavar="FOLDER")
    add("--gpu", type=int, nargs="+", default=[], metavar="N", help="measure on these GPUs")
    add("--budget", default=BUDGET, help=f"of tuning a network (default: {BUDGET})")
    add("--effort", type=int, default=EFFORT, help=f"likewise (default: {EFFORT})")
    add(
        "--since",
        type=commit_id,
        default=EARLIER,
        metavar="COMMIT",
        help=f"what rows since.* compare with (default: {EARLIER}; benchmarks/pack_earlier.py)",
    )
    add("--again", action="store_true", help="measure also the rows that the output holds")
    add("--commit", metavar="HASH", help="of the sources, where this is no git checkout")
    add("--merge", type=Path, nargs="+", metavar="FILE", help="join files into the output")
    return parser


if __name__ == "__main__":
    sys.exit(main())
