"""Print which goals a file of results reaches.

    python benchmarks/summary.py benchmarks/results/h200-evidence.json
    python benchmarks/summary.py results.json --worst 'zoo.*'

A goal is reached by the figure itself; the band beside it is what noise allows. Goals of rows that the
file does not hold are ``not measured``; those of a row that fails although its figures would do, as where
layers were left out, are ``row failed``. Exit code 1 where a goal is not reached.

``--worst`` prints instead the rows that compare an engine with another, the slowest first, and what each loses
most on: the problem whose operators take most beyond their bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from rows.base import Row
from rows.catalogue import all_rows
from rows.result_file import Record, ResultFile

from wpk.report import format_table

_WORST = [
    "row",
    "times as fast",
    "µs",
    "best other",
    "estimate",
    "bound",
    "loses most on",
    "µs beyond bound",
    "",
]

REACHED, MISSED, UNKNOWN, FAILED = "reached", "not reached", "not measured", "row failed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of goals; 0 where all are reached. Or print that of the worst."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, metavar="FILE.json")
    parser.add_argument("--worst", metavar="ROWS", help="print these rows, the slowest first")
    options = parser.parse_args(arguments)
    if not options.results.is_file():
        raise SystemExit(f"there is no {options.results}")
    records = ResultFile(options.results).records
    if options.worst:
        print(format_table(_WORST, worst_table(records, options.worst)))
        return 0
    table = goals_table(all_rows(), records)
    print(format_table(["row", "goal", "measured", "noise", ""], table))
    states = [line[-1] for line in table]
    print(
        f"\n{states.count(REACHED)} of {len(table)} goals reached, {states.count(UNKNOWN)} not measured"
    )
    return 0 if states.count(REACHED) == len(table) else 1


def goals_table(rows: Mapping[str, Row], records: Mapping[str, Record]) -> list[list[str]]:
    """A line a goal: row, goal, figure, its band, and what became of it."""
    lines = []
    for name, row in rows.items():
        record = records.get(name, {})
        measured = {each["goal"]: each for each in record.get("figures", {}).get("goals", ())}
        fails = not record.get("passed") and all(each["reached"] for each in measured.values())
        for goal in row.goals:
            told, band, state = _line(measured.get(str(goal)))
            if state == UNKNOWN and "error" in record:
                told = record["error"].splitlines()[-1]
            if state == REACHED and fails:
                state = FAILED
            lines.append([name, str(goal), told, band, state])
    return lines


def _line(figure: dict[str, Any] | None) -> tuple[str, str, str]:
    if figure is None:
        return "", "", UNKNOWN
    low, high = figure["low"], figure["high"]
    band = f"{low:.3g} to {high:.3g}" if low < high else ""
    return f"{figure['value']:.3g}", band, REACHED if figure["reached"] else MISSED


def worst_table(records: Mapping[str, Record], pattern: str) -> list[list[str]]:
    """A line a row that holds a speedup, the least first; and before them those that were not measured."""
    named = {name: record for name, record in records.items() if fnmatch(name, pattern)}
    unmeasured = [
        [name, *[""] * 7, _last_line(r["error"])] for name, r in named.items() if "error" in r
    ]
    held = [
        (name, record["figures"], record["summary"])
        for name, record in named.items()
        if "speedup" in record.get("figures", {})
    ]
    held.sort(key=lambda each: each[1]["speedup"]["median"])
    return [*unmeasured, *(_worst_line(*each) for each in held)]


def _worst_line(name: str, figures: Mapping[str, Any], summary: str) -> list[str]:
    """Times in microseconds."""
    times, best, plan = (
        figures.get("times", {}),
        figures.get("best_baseline"),
        figures.get("plan", {}),
    )
    ours, theirs = (times.get(each, {}).get("median_seconds") for each in ("wpk", best))
    lost = next(iter(figures.get("beyond_bound", ())), {})
    wrong = "refused" in figures or not figures.get("right", True) or plan.get("inconclusive")
    return [
        name,
        f"{figures['speedup']['median']:.2f}",
        _microseconds(ours),
        _microseconds(theirs),
        _microseconds(plan.get("estimate_seconds")),
        _microseconds(plan.get("bound_seconds")),
        f"{lost['operators']} x {lost['problem']}" if lost else "",
        _microseconds(lost.get("beyond_seconds")),
        _last_line(summary) if wrong else "",
    ]


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.1f}"


def _last_line(text: str) -> str:
    return (text.splitlines() or [""])[-1]


if __name__ == "__main__":
    sys.exit(main())
