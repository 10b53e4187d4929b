"""The command line of scripts/fuzz."""

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from fuzzing.campaign import Budget, open_log, run_campaign, seeds, table
from fuzzing.corpus import read_case, write_case
from fuzzing.graph_worker import GraphSettings
from fuzzing.graph_worker import serve as serve_graphs
from fuzzing.graphs import Case
from fuzzing.plan_worker import KINDS, PlanSettings
from fuzzing.plan_worker import serve as serve_plans
from fuzzing.running import GOOD, Outcome, Result
from fuzzing.shrinking import shrink
from fuzzing.worker import Worker

FINE = ("right", "refused", "rejected", "invalid", "undecided", "same", "different")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; 1 where something bad was found."""
    asked = _parser().parse_args(arguments)
    if asked.what == "shrink":
        return shrink_files(asked)
    shard = tuple(int(n) for n in asked.shard.split("/"))
    of_models = asked.what in ("graphs", "passes")
    settings: GraphSettings | PlanSettings
    if of_models:
        settings, serve = _graph_settings(asked), serve_graphs
    else:
        settings, serve = PlanSettings(asked.out / "failures"), serve_plans
        if asked.kinds:
            settings = replace(settings, kinds=tuple(asked.kinds.split(",")))
    name = f"{asked.what}-{asked.seed}-{shard[0]}of{shard[1]}-{asked.check}.jsonl.gz"
    jobs = seeds(asked.seed, (shard[0], shard[1]))
    budget = Budget(asked.minutes, asked.cases)
    with open_log(asked.out, name) as log:
        rows = run_campaign(serve, settings, jobs, budget, asked.workers, log)
    print(table(rows))
    if of_models:
        passes = Counter(name for row in rows for name in row.get("passes", {}))
        said = ", ".join(f"{name} {count}" for name, count in passes.most_common())
        print(f"models that a pass rewrote: {said}")
    else:
        print(Counter(f"{row.get('kind')}: {row['outcome']}" for row in rows).most_common())
    return int(any({row["outcome"], row.get("unchecked")} - set(FINE) - {None} for row in rows))


def _graph_settings(asked: argparse.Namespace) -> GraphSettings:
    check = "passes" if asked.what == "passes" else asked.check
    return GraphSettings(asked.finalists, check, asked.out / "failures", asked.cubins == "on")


def shrink_files(asked: argparse.Namespace) -> int:
    """Shrink the cases of files, and write what is left beside them."""
    runner = CaseRunner(_graph_settings(asked))
    for path in asked.files:
        case = read_case(path)
        first = runner.result(case)
        print(f"{path.name}: {first.outcome} {first.where} {first.words[:300]}", flush=True)
        if first.outcome in GOOD:
            continue

        def fails(other: Case, first: Result = first) -> bool:
            result = runner.result(other)
            return (result.outcome, result.where) == (first.outcome, first.where)

        small = shrink(case, fails, asked.seconds)
        words = f"{first.outcome}: {runner.result(small).words[:300]}"
        write_case(small, path.with_suffix(".small.onnxtxt"), words)
        print(onnx.printer.to_text(small.model)[:1500], f"\n{small.precision} {words}", flush=True)
    runner.close()
    return 0


class CaseRunner:
    """Runs cases in a process of their own."""

    def __init__(self, settings: GraphSettings, limit_seconds: float = 100.0) -> None:
        """Nothing is started yet."""
        self._worker: Worker[Case, GraphSettings] = Worker(serve_graphs, settings)
        self._limit_seconds = limit_seconds

    def result(self, case: Case) -> Result:
        """How a case ends, hangs and deaths included."""
        self._worker.give(case)
        while True:
            if not self._worker.connection.poll(self._limit_seconds):
                self._worker.close()
                return Result(Outcome.HANG)
            try:
                answer = self._worker.take()
            except EOFError as death:
                return Result(Outcome.DEATH, str(death))
            if isinstance(answer, Result):
                return answer

    def close(self) -> None:
        """End the process."""
        self._worker.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("what", choices=["graphs", "passes", "plans", "shrink"])
    parser.add_argument("files", type=Path, nargs="*", help="cases to shrink")
    parser.add_argument("--seconds", type=float, default=120.0, help="for shrinking one case")
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--cases", type=int, default=None, help="end after so many")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--shard", default="0/1", help="i/n: of n machines, this is number i")
    parser.add_argument("--finalists", type=int, default=1, help="schedules compiled; wpk's own: 8")
    parser.add_argument("--check", choices=["on", "off", "both", "passes"], default="on")
    parser.add_argument("--cubins", choices=["on", "off"], default="on", help="compile for GPUs")
    parser.add_argument("--kinds", help=f"of damaged plans: some of {','.join(KINDS)}")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path("fuzz-results"))
    return parser
