"""Woodpecker-DL's searchers against random search at equal trials, on whole spaces of ordinary cores.

    python benchmarks/woodpecker_study.py --recordings tests/replay

Needs no GPU. `searcher_study.py` is about what production does with today's templates; this is about the paper's
question. What is searched is every legal schedule of a template, nothing pruned, where there are
2000 and more; tf32 problems are left out, whose kernels of the ordinary cores are those of fp32. Every
recording has seeds of its own. The table of Woodpecker-DL's five convolutions
comes with it: the paper states speedups over cuDNN on a P100 for which it gives no numbers, so the
ratios between its searchers are what can be set beside these.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))  # Python's safe path leaves a script's folder out

from papers.ppo import PaperPpoSearch
from pruning_study import TARGET, read_all
from study_problems import PAPER_ROWS, ROWS

from wpk.dtypes import Precision
from wpk.performance.bound import bound
from wpk.search.searchers.registry import SEARCHERS, MakeSearcher
from wpk.search.searchers.replay import Recording, best_so_far, replay

RESULTS = Path(__file__).parent / "results" / "h200-woodpecker.json"

LEAST_SCHEDULES, TRIALS, SEEDS = 2000, 64, 5
"""Of a space; of a search; searches of each space by each searcher."""

RESAMPLES, RESAMPLING_SEED = 10_000, 0
"""Of the bootstrap."""

PAPER = "ppo, paper's settings"
COMPARED: dict[str, MakeSearcher] = {
    **{name: SEARCHERS[name] for name in ("random", "genetic", "ppo", "evolution")},
    PAPER: PaperPpoSearch,
}

Floats = NDArray[np.float64]


def search(recordings: Sequence[Recording], make: MakeSearcher) -> Floats:
    """Best times after each trial over the best of all: (recordings, seeds, trials)."""
    curves = [
        [
            best_so_far(replay(make(recording.space, SEEDS * place + turn), recording, TRIALS))
            for turn in range(SEEDS)
        ]
        for place, recording in enumerate(recordings)
    ]
    best = np.asarray([recording.best for recording in recordings])
    ratios: Floats = np.asarray(curves) / best[:, None, None]
    return ratios


def gain(random: Floats, other: Floats) -> dict[str, Any]:
    """How many times faster than random search's the found schedules are, in the geometric mean.

    The interval is that of a bootstrap which draws problems, and of each problem its seeds.

    Args:
        random: Best times of random search: (recordings, seeds).
        other: Those of another.
    """
    generator = np.random.default_rng(RESAMPLING_SEED)
    count, seeds = random.shape
    means = np.empty(RESAMPLES)
    for turn in range(RESAMPLES):
        rows = generator.integers(0, count, (count, 1))
        first = np.log(random[rows, generator.integers(0, seeds, (count, seeds))])
        second = np.log(other[rows, generator.integers(0, seeds, (count, seeds))])
        means[turn] = first.mean() - second.mean()
    low, high = np.exp(np.quantile(means, [0.025, 0.975]))
    ratio = np.exp(np.log(random).mean() - np.log(other).mean())
    better = (np.log(other).mean(axis=1) < np.log(random).mean(axis=1)).sum()
    return {
        "over_random": float(ratio),
        "interval_95": [float(low), float(high)],
        "problems_better": int(better),
        "over_exhaustive": float(np.exp(np.log(other).mean())),
    }


def paper_table(
    recordings: Sequence[Recording], found: Mapping[str, Floats]
) -> dict[str, dict[str, Any]]:
    """Woodpecker-DL's table 1: microseconds by each searcher, geometric means over the seeds."""
    table: dict[str, dict[str, Any]] = {}
    for place, recording in enumerate(recordings):
        if recording.problem not in PAPER_ROWS:
            continue
        times = {
            name: float(np.exp(np.log(ratios[place, :, -1]).mean())) * recording.best * 1e6
            for name, ratios in found.items()
        }
        table[recording.problem] = {
            "us": times,
            "exhaustive_us": recording.best * 1e6,
            "bound_us": bound(ROWS[recording.problem], TARGET).seconds * 1e6,
            "schedules": len(recording.trials),
            "ppo_over_genetic": times["genetic"] / times["ppo"],
        }
    return {row: table[row] for row in PAPER_ROWS}


def study(recordings: Sequence[Recording]) -> dict[str, Any]:
    """Search all of them with all searchers."""
    found = {name: search(recordings, make) for name, make in COMPARED.items()}
    random = found["random"][:, :, -1]
    names = [f"{recording.problem}-{recording.template}" for recording in recordings]
    return {
        "trials": TRIALS,
        "seeds": SEEDS,
        "spaces": {n: len(r.trials) for n, r in zip(names, recordings, strict=True)},
        "searchers": {
            name: gain(random, ratios[:, :, -1])
            | {"curve": np.exp(np.log(ratios).mean(axis=(0, 1))).round(4).tolist()}
            for name, ratios in found.items()
        },
        "best_over_exhaustive": {
            name: dict(zip(names, ratios[:, :, -1].round(4).tolist(), strict=True))
            for name, ratios in found.items()
        },
        "woodpecker_table_1": paper_table(recordings, found),
        "paper": "RL 1.09 to 1.66 times faster than genetic on these five, both than random (P100)",
    }


def show(result: Mapping[str, Any]) -> None:
    """Print the tables."""
    print(f"{len(result['spaces'])} spaces, {TRIALS} trials, {SEEDS} seeds each\n")
    print("| searcher | faster than random | 95 % | better on | over exhaustive |")
    print("|---|---|---|---|---|")
    for name, each in result["searchers"].items():
        low, high = each["interval_95"]
        print(
            f"| {name} | {each['over_random']:.3f} | {low:.3f} to {high:.3f} "
            f"| {each['problems_better']} | {each['over_exhaustive']:.3f} |"
        )
    columns = [*COMPARED, "exhaustive", "bound"]
    print(f"\n| us | {' | '.join(columns)} | PPO/genetic |\n|{'---|' * (len(columns) + 2)}")
    for row, each in result["woodpecker_table_1"].items():
        values = [*each["us"].values(), each["exhaustive_us"], each["bound_us"]]
        times = " | ".join(f"{value:.2f}" for value in values)
        print(f"| {row} | {times} | {each['ppo_over_genetic']:.3f} |")


def main() -> None:
    """Study the recordings of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recordings", type=Path, required=True, help="of space_study.py")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    every = [each for found in read_all(options.recordings).values() for each in found]
    large = [each for each in every if len(each.trials) >= LEAST_SCHEDULES]
    result = study([e for e in large if ROWS[e.problem].precision is not Precision.TF32])
    show(result)
    machine = json.loads((options.recordings / "machine.json").read_text(encoding="utf-8"))
    text = json.dumps({"machine": machine} | result, indent=1)
    options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
