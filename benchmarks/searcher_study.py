"""Searchers at equal trials, replayed on recorded problems of several networks, as production searches them.

    python benchmarks/train_cost_model.py --recordings tests/replay/h100 --apart build/models
    python benchmarks/searcher_study.py --recordings tests/replay/h100 --models build/models

Needs no GPU. Four settings, told apart:

- **problems**: what production does: all templates of a problem compete for its trials, each over the schedules
  that the score keeps, the first 8 by the learned costs first. The best of all that was recorded is the measure.
- **problems, by estimate**: the same where the analytical estimate says which are the first 8.
- **kept**: the first of single templates. Spaces of fewer than twice as many schedules as trials are left out: a
  search that tries nearly all of them shows nothing.
- **full**: grids of single templates (`spaces.sampling`), nothing pruned, nothing tried first.

What is carried over comes from the other networks only. Intervals are those of a bootstrap that draws spaces:
seeds are averaged before, since more of them do not make more spaces.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from spaces.ablations import COMPARED
from spaces.recorded import RecordedSpace, read_spaces
from spaces.replaying import Rows, contenders, curve, experience_of

from wpk.performance import Floats
from wpk.report import format_table
from wpk.search.models import PROMISING
from wpk.search.searchers import Experience

RESULTS = Path(__file__).parent / "results" / "h100-searchers.json"

TRIALS = {"problems": 64, "problems, by estimate": 64, "kept": 32, "full": 32}
"""Of a search, by setting: as many as effort 1 makes of a problem; of a single space half of that."""

SEEDS = 20
"""Searches of each space by each searcher."""

MARKS = (17, 32, 64)
"""After how many trials they are compared: 17 a problem are what 20 s of a budget came to
(docs/decisions/0031-comparing-finalists.md)."""

LEAST_LEGAL = 500
"""Of a full space, of which the grid is a part."""

NEAR = 1.01
"""Of the best: near enough."""

RESAMPLES, RESAMPLING_SEED = 10_000, 0

PAIRS = (
    ("ppo", "ppo that never learns"),
    ("ppo, carried", "ppo that never learns"),
    ("ppo, carried", "ppo, carried, learns no more"),
    ("ppo, carried", "model alone"),
    ("genetic", "random neighbour"),
    ("genetic", "genetic, no crossover"),
    ("genetic, carried", "genetic"),
    ("genetic and ppo, carried", "genetic and ppo"),
    ("genetic and ppo, carried", "model alone"),
)
"""How many times faster the first finds schedules than the second."""


@dataclass(frozen=True)
class Case:
    """What is searched.

    Attributes:
        name: Of the problem, or of the space.
        spaces: The templates that compete.
        rows: Of each, those that are searched.
        promising: How many of them come first.
        best: The least seconds that were recorded.
    """

    name: str
    spaces: tuple[RecordedSpace, ...]
    rows: dict[str, Rows]
    promising: int
    best: float


def cases(spaces: Sequence[RecordedSpace]) -> dict[str, list[Case]]:
    """Return what is searched in each setting."""
    names = list(dict.fromkeys(space.name for space in spaces))
    of_names = [(name, tuple(s for s in spaces if s.name == name)) for name in names]
    problems = [_case(*each, "kept", PROMISING) for each in of_names]
    by_estimate = [_case(*each, "kept", PROMISING, as_learned=False) for each in of_names]
    tensor = [space for space in spaces if len(space.grid)]
    kept = [_case(s.key, (s,), "kept", PROMISING) for s in tensor]
    full = [_case(s.key, (s,), "grid", 0) for s in tensor if s.legal > LEAST_LEGAL]
    every = {
        "problems": problems,
        "problems, by estimate": by_estimate,
        "kept": kept,
        "full": full,
    }
    return {
        setting: [c for c in found if _size(c) >= 2 * TRIALS[setting]]
        for setting, found in every.items()
    }


def _case(
    name: str, spaces: tuple[RecordedSpace, ...], part: str, promising: int, as_learned: bool = True
) -> Case:
    rows = {space.key: np.asarray(getattr(space, part)) for space in spaces}
    measure = [space.costs if part == "kept" else space.costs[rows[space.key]] for space in spaces]
    best = min(float(costs.min()) for costs in measure)
    if as_learned:
        rows = {space.key: space.as_learned(rows[space.key]) for space in spaces}
    return Case(name, spaces, rows, promising, best)


def _size(case: Case) -> int:
    return sum(len(rows) for rows in case.rows.values())


_spaces: list[RecordedSpace] = []
"""What a process of the study has read."""


def _read(folder: Path, models: Path) -> None:
    _spaces[:] = read_spaces(folder, models)


@cache
def _known(template: str, without: str) -> Experience | None:
    """One object each, so that a policy is taught once by it."""
    return experience_of(_spaces, template, without)


def searched(setting: str, place: int) -> dict[str, list[list[float]]]:
    """Return what each searcher finds in a case of a setting: the best after each trial, over the best of all."""
    case = cases(_spaces)[setting][place]
    network = case.spaces[0].network
    known = {s.template.name: _known(s.template.name, network) for s in case.spaces}
    found = {}
    for name, compared in COMPARED.items():
        runs = []
        for turn in range(SEEDS):
            asked = case.spaces, case.rows, compared, known, case.promising, SEEDS * place + turn
            found_by = curve(contenders(*asked), case.spaces, TRIALS[setting])
            runs.append((found_by / case.best).tolist())
        found[name] = runs
    return found


def gain(first: Floats, second: Floats) -> dict[str, Any]:
    """Return how many times faster the second's schedules are than the first's, in the geometric mean.

    Args:
        first: Best times: (spaces, seeds).
        second: Those of another searcher.
    """
    differences = (np.log(first) - np.log(second)).mean(axis=1)
    generator = np.random.default_rng(RESAMPLING_SEED)
    drawn = generator.integers(0, len(differences), (RESAMPLES, len(differences)))
    low, high = np.exp(np.quantile(differences[drawn].mean(axis=1), [0.025, 0.975]))
    return {
        "ratio": float(np.exp(differences.mean())),
        "interval_95": [float(low), float(high)],
        "better": int((differences > 0).sum()),
        "worse": int((differences < 0).sum()),
    }


def trials_to(curves: Floats, near: float = NEAR) -> dict[str, float | None]:
    """Return after how many trials searches are within a factor of the best of all.

    Returns:
        ``median`` of all searches, None where less than half of them come so near; ``share`` of those that do.
    """
    hit = (curves <= near).any(axis=-1)
    first = np.where(hit, (curves <= near).argmax(axis=-1) + 1.0, np.inf)
    median = float(np.median(first))
    return {"median": median if np.isfinite(median) else None, "share": round(float(hit.mean()), 3)}


def summary(found: Mapping[str, Floats]) -> dict[str, Any]:
    """Return what is said of a setting: of curves (spaces, seeds, trials) by searcher."""
    marks = [mark for mark in MARKS if mark <= found["random"].shape[-1]]
    at = {mark: {name: curves[:, :, mark - 1] for name, curves in found.items()} for mark in marks}
    return {
        "searchers": {
            name: {
                "over_best": {
                    str(m): round(float(np.exp(np.log(at[m][name]).mean())), 4) for m in marks
                },
                "over_random": {str(m): gain(at[m]["random"], at[m][name]) for m in marks},
                "trials_to_within_1_percent": trials_to(curves),
            }
            for name, curves in found.items()
        },
        "pairs": {
            f"{a} over {b}": {str(m): gain(at[m][b], at[m][a]) for m in marks} for a, b in PAIRS
        },
    }


def study(folder: Path, models: Path) -> dict[str, Any]:
    """Search everything with all searchers, on all cores."""
    _read(folder, models)
    every = cases(_spaces)
    plan = [(setting, place) for setting, of in every.items() for place in range(len(of))]
    # The cases of a network follow each other, so that what it is not taught by is learnt once a process.
    plan.sort(key=lambda each: every[each[0]][each[1]].spaces[0].network)
    curves: dict[str, dict[str, list[list[list[float]]]]] = {}
    with ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), None, _read, (folder, models)
    ) as processes:
        for (setting, _), found in zip(
            plan, processes.map(searched, *zip(*plan, strict=True), chunksize=8), strict=True
        ):
            for name, runs in found.items():
                curves.setdefault(setting, {}).setdefault(name, []).append(runs)
            sys.stderr.write(".")
            sys.stderr.flush()
    names = {
        setting: [every[setting][place].name for s, place in plan if s == setting]
        for setting in every
    }
    return {
        "trials": TRIALS,
        "seeds": SEEDS,
        "settings": {
            setting: {"spaces": names[setting]}
            | summary({name: np.asarray(runs) for name, runs in by_name.items()})
            for setting, by_name in sorted(
                curves.items(), key=lambda each: list(TRIALS).index(each[0])
            )
        },
    }


def show(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables."""
    for setting, each in result["settings"].items():
        yield f"\n{setting}: {len(each['spaces'])}, {result['seeds']} seeds each"
        rows, marks = [], list(each["searchers"]["random"]["over_best"])
        for name, of in each["searchers"].items():
            near = of["trials_to_within_1_percent"]
            best = [f"{of['over_best'][mark]:.4f}" for mark in marks]
            over = [_words(of["over_random"][mark]) for mark in marks]
            rows.append([name, *best, *over, f"{near['median'] or 'none'} ({near['share']:.0%})"])
        heading = ["searcher", *(f"after {m}" for m in marks)]
        heading += [*(f"over random, {m}" for m in marks), "trials to 1 %"]
        yield format_table(heading, rows)
        pairs = [[n, *(_words(of[m]) for m in marks)] for n, of in each["pairs"].items()]
        yield format_table(["", *(f"after {m}" for m in marks)], pairs)


def _words(of: Mapping[str, Any]) -> str:
    low, high = of["interval_95"]
    return f"{of['ratio']:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    """Study the recordings of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recordings", type=Path, required=True, help="of record_spaces.py")
    parser.add_argument("--models", type=Path, required=True, help="of train_cost_model.py --apart")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    machine = json.loads((options.recordings / "machine.json").read_text(encoding="utf-8"))
    result = {"machine": machine} | study(options.recordings, options.models)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print("\n".join(show(result)))


if __name__ == "__main__":
    main()
