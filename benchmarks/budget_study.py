"""How a budget is shared: the tuning loop replayed on recorded problems, by a clock that goes forward with each trial.

    python benchmarks/budget_study.py --recordings tests/replay/h100

Needs no GPU. All recorded problems are one network's, each with a number of operators that is drawn. Three ways to share:

- **by turn**: each problem may spend the same part of the budget.
- **by headroom, once**: in proportion to what is to be won (`Task.gain`), as the models' choice was measured.
- **by headroom**: what production does: the same behind a first turn of all, as the best of that turn was measured.

The searcher is random search behind the first 8 by the estimate, so that nothing that was taught by these recordings
enters. What is counted: the network's time over the least that was recorded, and problems that got one trial only.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from spaces.recorded import RecordedSpace, read_spaces

from wpk.performance import bound
from wpk.progress import silent
from wpk.report import format_table
from wpk.search.loop.budget import EFFORTS, Budget
from wpk.search.loop.task import Contender, Task
from wpk.search.loop.tune import FIRST_SHARE, tune
from wpk.search.loop.tuning import Session
from wpk.search.models import PROMISING
from wpk.search.searchers import Searcher, SearchSpace
from wpk.search.searchers.random_search import RandomSearch
from wpk.search.store import MODELS, Setup, StoreKey, TuningStore
from wpk.trial import Regime, Trial
from wpk.trial_bench import Request

RESULTS = Path(__file__).parent / "results" / "h100-budget.json"

TRIAL_SECONDS = 0.066
"""What a measurement takes, of a search or side by side: ConvNeXt-T's on an H100 with 12 cores."""

SECONDS_A_PROBLEM = (0.4, 0.6, 1.2, 2.4)
"""Budgets: what 60 s come to for networks of 100, 65, 33 and 16 problems, whose trials have 0.65 of it."""

MOST_OPERATORS = 9
SEEDS = 5


@dataclass(frozen=True)
class RecordedProblem:
    """A recorded problem as part of a network.

    Attributes:
        spaces: Of each template.
        count: Operators of the network that have it.
    """

    spaces: tuple[RecordedSpace, ...]
    count: int

    @property
    def best(self) -> float:
        """The least seconds of what production searches."""
        return min(float(space.costs[space.kept].min()) for space in self.spaces)

    def first(self) -> Trial:
        """The models' choice: the least estimate."""
        space = min(self.spaces, key=lambda each: float(each.estimates[each.kept[0]]))
        return list(space.by_candidate.values())[space.kept[0]]

    def task(self) -> Task:
        """What there is to tune, the models' choice measured."""
        space, measured = self.spaces[0], self.first().cost
        return Task(
            problem=space.problem,
            count=self.count,
            estimate=float(space.estimates[space.kept[0]]),
            bound=bound(space.problem, space.target).seconds,
            floor=space.target.launch_seconds,
            contenders=tuple(map(_contender, self.spaces)),
            measured=measured if np.isfinite(measured) else None,
        )


def _contender(space: RecordedSpace) -> Contender:
    def begin(seed: int) -> Searcher:
        rows = space.kept
        about = space.problem.features(), PROMISING, space.estimates[rows], None
        return RandomSearch(
            SearchSpace(space.template.schedule_type, space.columns(rows), *about), seed
        )

    return Contender(space.template.maker, float(space.estimates[space.kept[0]]), begin)


class ReplayedBench:
    """Measuring is looking up; the clock goes forward by what a measurement takes."""

    def __init__(self, spaces: Sequence[RecordedSpace]) -> None:
        """Take all that was recorded."""
        self._known = {
            (s.problem, candidate): trial
            for s in spaces
            for candidate, trial in s.by_candidate.items()
        }
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now

    def expect(self, requests: Sequence[Request]) -> None:
        """Nothing is compiled."""

    def drop(self, requests: Sequence[Request]) -> None:
        """Nor dropped."""

    def measure(self, requests: Sequence[Request]) -> Iterator[Trial]:
        """Yield what was recorded."""
        for request in requests:
            self.now += TRIAL_SECONDS
            yield self._known[request.problem, request.candidate]


def by_turn(task: Task) -> Task:
    """The task as one of which as much is to be won as of all others."""
    return replace(task, count=1, measured=task.bound + task.floor + 1.0)


Way = tuple[Callable[[Task], Task], float]
"""What tasks are made of, and the part of the budget in which a little of each is tried first."""

WAYS: Mapping[str, Way] = {
    "by turn": (by_turn, 0.0),
    "by headroom, once": (lambda task: task, 0.0),
    "by headroom": (lambda task: task, FIRST_SHARE),
}


def tuned(
    network: Sequence[RecordedProblem], way: Way, budget: float, seed: int
) -> dict[str, float]:
    """Tune a network within a budget, and return what came of it."""
    bench = ReplayedBench([space for problem in network for space in problem.spaces])
    bench.now = len(network) * TRIAL_SECONDS  # the models' choices, which are measured first
    target = network[0].spaces[0].target
    with tempfile.TemporaryDirectory() as folder, TuningStore(Path(folder) / "t.sqlite") as store:
        session = Session(
            store=store,
            run=store.begin_run(seed),
            setup=Setup(target.name, target.arch, "recorded", "recorded"),
            regime=Regime.WARM,
            effort=EFFORTS[1],
            budget=Budget(budget - bench.now),
            bench=bench,  # type: ignore[arg-type]
            clock=bench,
        )
        for problem in network:
            first, key = problem.first(), problem.spaces[0].problem
            store.record(
                session.run.id,
                StoreKey(key, first.candidate.maker, session.setup),
                replace(first, proposer=MODELS),
                session.regime,
            )
        task_of, first = way
        tasks = [task_of(problem.task()) for problem in network]
        results = tune(tasks, session, silent, first)
    total, trials = 0.0, []
    for problem in network:
        tried = {problem.first().candidate: problem.first()}
        tried |= {each.candidate: each for each in results[problem.spaces[0].problem].tried}
        total += problem.count * min(trial.cost for trial in tried.values())
        trials.append(len(tried))
    least = sum(problem.count * problem.best for problem in network)
    return {
        "over_best": total / least,
        "one_trial": sum(count == 1 for count in trials) / len(trials),
        "fewest": min(trials),
        "median_trials": float(np.median(trials)),
        "spent": bench.now / budget,
    }


def network_of_all(spaces: Sequence[RecordedSpace], seed: int) -> list[RecordedProblem]:
    """All recorded problems, with numbers of operators that a seed draws."""
    generator = np.random.default_rng(seed)
    names = dict.fromkeys(space.name for space in spaces)
    searched = {n: tuple(s for s in spaces if s.name == n and len(s.kept)) for n in names}
    return [
        RecordedProblem(found, int(generator.integers(1, MOST_OPERATORS + 1)))
        for found in searched.values()
        if found
    ]


def study(spaces: Sequence[RecordedSpace], seeds: int = SEEDS) -> dict[str, Any]:
    """Tune within all budgets in all ways."""
    found: dict[str, Any] = {}
    for seconds in SECONDS_A_PROBLEM:
        for name, way in WAYS.items():
            networks = [network_of_all(spaces, seed) for seed in range(seeds)]
            runs = [tuned(n, way, seconds * len(n), seed) for seed, n in enumerate(networks)]
            means = {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}
            found.setdefault(str(seconds), {})[name] = means
    return {"trial_seconds": TRIAL_SECONDS, "seeds": seeds, "seconds_a_problem": found}


def show(result: Mapping[str, Any]) -> str:
    """The table."""
    rows = [
        [seconds, way, *(f"{value:.3f}" for value in means.values())]
        for seconds, ways in result["seconds_a_problem"].items()
        for way, means in ways.items()
    ]
    heading = [
        "s a problem",
        "shared",
        "over best",
        "one trial",
        "fewest",
        "median trials",
        "spent",
    ]
    return format_table(heading, rows)


def main() -> None:
    """Study the recordings of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recordings", type=Path, required=True, help="of record_spaces.py")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    machine = json.loads((options.recordings / "machine.json").read_text(encoding="utf-8"))
    result = {"machine": machine} | study(read_spaces(options.recordings))
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(show(result))


if __name__ == "__main__":
    main()
