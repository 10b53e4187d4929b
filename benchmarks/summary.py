"""Print which goals a file of results reaches.

    python benchmarks/summary.py benchmarks/results/h200-evidence.json

A goal is reached by the figure itself; the band beside it is what noise allows. Goals of rows that the
file does not hold are ``not measured``; those of a row that fails although its figures would do, as where
layers were left out, are ``row failed``. Exit code 1 where a goal is not reached.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from rows.base import Row
from rows.catalogue import all_rows
from rows.result_file import Record, ResultFile

from wpk.report import format_table

REACHED, MISSED, UNKNOWN, FAILED = "reached", "not reached", "not measured", "row failed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0 where all goals are reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, metavar="FILE.json")
    options = parser.parse_args(arguments)
    if not options.results.is_file():
        raise SystemExit(f"there is no {options.results}")
    table = goals_table(all_rows(), ResultFile(options.results).records)
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


if __name__ == "__main__":
    sys.exit(main())
