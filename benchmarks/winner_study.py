"""Where the fastest recorded schedules stand by each score: how many winners each pruning keeps, and why.

    python benchmarks/winner_study.py --recordings tests/replay/h100

Needs no GPU. For every recorded space of more than 500 legal schedules, two questions:

- **whole**: where does the fastest of all that was recorded stand among all legal schedules? What was recorded
  is partly what the score of waves keeps, so this favours that score; it is what a user of `--prune` gets.
- **grid**: where does the fastest of the grid stand among the grid's schedules, which no score has chosen? This
  favours none.
- **outside**: is any schedule of the grid that the score of waves drops faster than all that it keeps?

A winner is kept where one within 1 % of the fastest is. Why: the factors of PUL, and the split of the reduction, of
the winner and of what PUL likes best.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from spaces.recorded import RecordedSpace, read_spaces

from wpk.performance import (
    Columns,
    Floats,
    SharedCost,
    bound,
    estimate,
    extended_pul,
    pul,
    shared_cost,
)
from wpk.report import format_table

RESULTS = Path(__file__).parent / "results" / "h100-winners.json"

LEAST_LEGAL = 500
SHARES = (0.01, 0.035, 0.1)
NEAR = 1.01

_TIE_DIGITS = 9  # scores that agree to so many digits differ by rounding only


def conflicts_of(space: RecordedSpace, columns: Columns) -> list[SharedCost]:
    """Return what the shared memory loads of schedules cost."""
    known: dict[object, SharedCost] = {}
    costs = []
    for row in range(len(next(iter(columns.values())))):
        schedule = space.template.schedule(columns, row)
        accesses = tuple(space.template.shared_accesses(space.problem, schedule))
        if accesses not in known:
            known[accesses] = shared_cost(accesses)
        costs.append(known[accesses])
    return costs


def orders(space: RecordedSpace, columns: Columns) -> dict[str, NDArray[np.int64]]:
    """Return the rows of some schedules by each score, the best first; ties as production breaks them."""
    work, least = (
        space.template.work(space.problem, columns, space.target),
        bound(space.problem, space.target),
    )
    costs = conflicts_of(space, columns)
    passes = np.asarray([each.passes for each in costs])
    seconds = estimate(work, least, space.target, passes)
    scores: dict[str, Floats] = {
        "waves": extended_pul(work, least.operations, space.target, passes).score,
        "pul": pul(work, space.target, np.asarray([each.coefficient for each in costs])).score,
    }
    return {k: np.lexsort((seconds, -v.round(_TIE_DIGITS))) for k, v in scores.items()}


def needed(order: NDArray[np.int64], good: NDArray[np.bool_]) -> float:
    """Return the share of an order that reaches the first good one."""
    return float((good[order].argmax() + 1) / len(order))


def study(space: RecordedSpace) -> dict[str, Any]:
    """Return what is said of one space."""
    _, legal = space.template.space(space.problem, space.target)
    legal = {name: legal[name] for name in space.names}
    place = {row: n for n, row in enumerate(map(tuple, np.stack(list(legal.values()), 1).tolist()))}
    near = np.zeros(len(place), bool)
    for row in np.flatnonzero(space.costs <= NEAR * space.costs.min()).tolist():
        near[place[tuple(space.table[row].tolist())]] = True
    whole = orders(space, legal)
    grid = space.columns(space.grid)
    of_grid = space.costs[space.grid]
    winner = int(space.costs.argmin())
    outside = space.costs[np.setdiff1d(space.grid, space.kept)]
    kept = float(space.costs[space.kept].min())
    first = {name: int(values[whole["pul"][0]]) for name, values in legal.items()}
    return {
        "legal": space.legal,
        "recorded": len(space.table),
        "grid": len(space.grid),
        "outside": len(outside),
        "outside_over_kept": round(float(outside.min()) / kept, 4) if len(outside) else None,
        "whole": {name: needed(order, near) for name, order in whole.items()},
        "of_grid": {
            name: needed(order, of_grid <= NEAR * of_grid.min())
            for name, order in orders(space, grid).items()
        },
        "winner": _described(space, space.columns(np.asarray([winner]))),
        "first_by_pul": _described(space, {name: np.asarray([v]) for name, v in first.items()}),
    }


def _described(space: RecordedSpace, columns: Columns) -> dict[str, Any]:
    work = space.template.work(space.problem, columns, space.target)
    (cost,) = conflicts_of(space, columns)
    factors = pul(work, space.target, cost.coefficient)
    return {
        "schedule": {name: int(values[0]) for name, values in columns.items()},
        "blocks": int(work.blocks[0]),
        "gm_ratio": round(float(factors.gm_ratio[0]), 4),
        "sm_ratio": round(float(factors.sm_ratio[0]), 4),
        "wb_ratio": round(float(factors.wb_ratio[0]), 4),
    }


def summary(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many winners each score keeps, of all spaces and by batch, and what tells winners apart."""
    groups = {
        "all": list(rows.values()),
        "batch 1": [row for name, row in rows.items() if "_b32." not in name],
        "batch 32": [row for name, row in rows.items() if "_b32." in name],
    }
    return {
        group: {
            "spaces": len(of),
            "kept": {
                part: {
                    score: {
                        f"{share:.1%}": sum(row[part][score] <= share for row in of)
                        for share in SHARES
                    }
                    for score in ("waves", "pul")
                }
                for part in ("whole", "of_grid")
            },
            "median_needed": {
                part: {
                    score: round(float(np.median([row[part][score] for row in of])), 4)
                    for score in ("waves", "pul")
                }
                for part in ("whole", "of_grid")
            },
            "outside": {
                "schedules": sum(row["outside"] for row in of),
                "spaces_where_one_is_faster": sum(
                    (row["outside_over_kept"] or 2) < 1 for row in of
                ),
            },
            "split": {
                who: sum(_splits(row[who]) for row in of) for who in ("winner", "first_by_pul")
            },
            "median_blocks": {
                who: float(np.median([row[who]["blocks"] for row in of]))
                for who in ("winner", "first_by_pul")
            },
        }
        for group, of in groups.items()
        if of
    }


def _splits(described: Mapping[str, Any]) -> bool:
    return int(described["schedule"].get("split", 1)) > 1


def show(result: Mapping[str, Any]) -> Sequence[str]:
    """Return the table."""
    rows = []
    for group, of in result["summary"].items():
        for part, scores in of["kept"].items():
            for score, kept in scores.items():
                middle = f"{of['median_needed'][part][score]:.1%}"
                rows.append(
                    [group, part, score, *map(str, kept.values()), str(of["spaces"]), middle]
                )
    heading = [
        "spaces",
        "among",
        "score",
        *(f"at {share:.1%}" for share in SHARES),
        "of",
        "median needed",
    ]
    return [format_table(heading, rows)]


def main() -> None:
    """Study the recordings of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recordings", type=Path, required=True, help="of record_spaces.py")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    spaces = [s for s in read_spaces(options.recordings) if len(s.grid) and s.legal > LEAST_LEGAL]
    rows = {space.key: study(space) for space in spaces}
    machine = json.loads((options.recordings / "machine.json").read_text(encoding="utf-8"))
    result = {"machine": machine, "summary": summary(rows), "spaces": rows}
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print("\n".join(show(result)))
    for group, of in result["summary"].items():
        print(group, json.dumps({name: of[name] for name in ("outside", "split", "median_blocks")}))


if __name__ == "__main__":
    main()
