"""Whether pruning keeps the winner: the kept schedules beside whole spaces that were measured.

    python benchmarks/pruning_study.py --recordings tests/replay

Needs no GPU. A problem's space is that of all its templates. The kept set holds the winner where the
noise band of its fastest schedule reaches that of the fastest of all. ``needed`` is the share of the
winner's template that would have to be kept by the score, by the paper's PUL and by the estimate.
A parameter that templates were given after a recording stays at what kernels did before (`BEFORE`).
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # Python's safe path leaves a script's folder out

from study_problems import HELD_OUT, ROWS, Row, Template

from wpk.device import noise_band
from wpk.performance.bank_conflicts import SharedCost, shared_cost
from wpk.performance.bound import Bound, bound
from wpk.performance.estimate import estimate
from wpk.performance.extension import extended_pul
from wpk.performance.pul import pul
from wpk.performance.work import Floats
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.template import Schedule
from wpk.search.models.shortlist import shortlist
from wpk.search.models.static_search import FINALISTS
from wpk.search.searchers.replay import Recording, read_recording
from wpk.targets.registry import find_target
from wpk.targets.target import Target
from wpk.trial import Trial

TARGET = find_target("h200")

BEFORE = {"split": 1, "early": 0, "rows": 1}
"""What kernels did before their templates had these parameters."""

RESULTS = Path(__file__).parent / "results" / "h200-pruning.json"


@dataclass(frozen=True)
class Kept:
    """What pruning left of a problem's recorded space.

    Attributes:
        row: Name of the problem.
        bound: Its bound.
        legal: Schedules recorded, over all templates.
        kept: Those that the score left, smallest estimate first.
        fastest: Of all.
    """

    row: str
    bound: Bound
    legal: int
    kept: tuple[Trial, ...]
    fastest: Trial

    @classmethod
    def of(cls, row: str, recordings: Sequence[Recording]) -> "Kept":
        """Prune again, with the models of today."""
        problem, limit = ROWS[row], bound(ROWS[row], TARGET)
        kept: list[tuple[float, Trial]] = []
        for recording in recordings:
            trials = {trial.candidate.configuration: trial for trial in recording.trials}
            found = shortlist(problem, as_recorded(recording), TARGET, limit)
            kept += [(s.estimate, trials[_of(recording, s.schedule)]) for s in found.ranked]
        kept.sort(key=lambda each: each[0])
        every = [trial for recording in recordings for trial in recording.trials]
        fastest = min(every, key=lambda trial: trial.cost)
        return cls(row, limit, len(every), tuple(trial for _, trial in kept), fastest)

    @property
    def share(self) -> float:
        """Of the legal schedules, those kept."""
        return len(self.kept) / self.legal

    @property
    def loss(self) -> float:
        """The fastest kept one's time over that of the fastest of all."""
        return min(trial.cost for trial in self.kept) / self.fastest.cost

    @property
    def holds_winner(self) -> bool:
        """Whether the bands of the fastest kept and of the fastest of all touch."""
        best = min(self.kept, key=lambda trial: trial.cost)
        return noise_band(best.seconds)[0] <= noise_band(self.fastest.seconds)[1]


def as_recorded(recording: Recording) -> Template:
    """The recording's template over the parameters that it had: those that came later stay as before."""
    template = TEMPLATE_OF[recording.template]

    def axes(_self: Template, problem: Row, target: Target) -> dict[str, tuple[int, ...]]:
        today = template.axes(problem, target)
        return {n: v if n in recording.parameters else (BEFORE[n],) for n, v in today.items()}

    restricted: Template = type("Recorded", (type(template),), {"axes": axes})()
    return restricted


def _of(recording: Recording, schedule: Schedule) -> tuple[tuple[str, int], ...]:
    """A schedule's parameters as the recording names it."""
    return tuple(p for p in schedule.parameters() if p[0] in recording.parameters)


def read_all(folder: Path) -> dict[str, list[Recording]]:
    """The recordings of a folder, by row.

    Raises:
        SystemExit: There are none, or they are of other spaces than today's.
    """
    found: dict[str, list[Recording]] = {}
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.xz")]):
        recording = read_recording(path)
        _, columns = as_recorded(recording).space(ROWS[recording.problem], TARGET)
        names = recording.parameters
        today = set(zip(*(columns[name].tolist() for name in names), strict=True))
        if today != {
            tuple(value for _, value in trial.candidate.configuration) for trial in recording.trials
        }:
            raise SystemExit(
                f"{path} does not hold the legal schedules of today, as far as they were there when it was recorded"
            )
        found.setdefault(recording.problem, []).append(recording)
    if not found:
        raise SystemExit(
            f"there is no recording in {folder}: those of tests/replay are of 2026-11-21"
        )
    return found


def needed_shares(problem: Row, recording: Recording, limit: float) -> dict[str, float]:
    """By which share of the template's schedules each order reaches one within a time."""
    template = as_recorded(recording)
    _, columns = template.space(problem, TARGET)
    schedules = [template.schedule(columns, row) for row in range(len(recording.trials))]
    trials = {trial.candidate.configuration: trial.cost for trial in recording.trials}
    good = np.asarray([trials[_of(recording, s)] for s in schedules]) <= limit
    costs = _shared_costs(problem, template, schedules)
    passes = np.asarray([cost.passes for cost in costs])
    conflicts = np.asarray([cost.coefficient for cost in costs])
    work, least = template.work(problem, columns, TARGET), bound(problem, TARGET)
    seconds = estimate(work, least, TARGET, passes)
    orders: dict[str, Floats] = {
        "score": -extended_pul(work, least.operations, TARGET, passes).score.round(9),
        "paper_pul": -pul(work, TARGET, conflicts).score.round(9),
        "estimate": seconds,
    }
    firsts = {k: good[np.lexsort((seconds, key))].argmax() + 1 for k, key in orders.items()}
    return {name: round(float(first / len(schedules)), 4) for name, first in firsts.items()}


def _shared_costs(problem: Row, template: Template, schedules: Sequence[Any]) -> list[SharedCost]:
    known: dict[object, SharedCost] = {}
    costs = []
    for schedule in schedules:
        accesses = tuple(template.shared_accesses(problem, schedule))
        if accesses not in known:
            known[accesses] = shared_cost(accesses)
        costs.append(known[accesses])
    return costs


def study(row: str, recordings: Sequence[Recording]) -> dict[str, Any]:
    """What is said of one row."""
    kept = Kept.of(row, recordings)
    low, high = noise_band(kept.fastest.seconds)
    winner = min(recordings, key=lambda recording: recording.best)
    first = min((trial.cost for trial in kept.kept[:FINALISTS]), default=inf)
    return {
        "held_out": row in HELD_OUT,
        "templates": {each.template: len(each.trials) for each in recordings},
        "winner": {
            "template": winner.template,
            "schedule": dict(kept.fastest.candidate.configuration),
        },
        "best_us": kept.fastest.cost * 1e6,
        "band_us": [low * 1e6, high * 1e6],
        "bound_us": kept.bound.seconds * 1e6,
        "legal": kept.legal,
        "kept": len(kept.kept),
        "kept_share": kept.share,
        "kept_best_over_best": kept.loss,
        "holds_winner": kept.holds_winner,
        "first_by_estimate_over_best": kept.kept[0].cost / kept.fastest.cost,
        "best_of_first_8_by_estimate_over_best": first / kept.fastest.cost,
        "needed": needed_shares(ROWS[row], winner, high),
    }


def main() -> None:
    """Study all recordings of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recordings", type=Path, required=True, help="tests/replay")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = {}
    print("| problem | legal | kept | winner kept | kept/best | needed: score | PUL | estimate |")
    print("|---|---|---|---|---|---|---|---|")
    for row, recordings in read_all(options.recordings).items():
        found = rows[row] = study(row, recordings)
        needed = " | ".join(f"{share:.1%}" for share in found["needed"].values())
        said = f"{'yes' if found['holds_winner'] else 'no'} | {found['kept_best_over_best']:.3f}"
        print(f"| {row} | {found['legal']} | {found['kept_share']:.1%} | {said} | {needed} |")
    machine = json.loads((options.recordings / "machine.json").read_text(encoding="utf-8"))
    result = {"machine": machine, "rows": rows}
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
