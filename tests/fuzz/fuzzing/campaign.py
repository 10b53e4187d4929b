"""Many jobs on all cores: one process a core, a time limit a job, a line of JSON a result."""

import gzip
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TextIO

from fuzzing.worker import READY, START_SECONDS, Serve, Worker

REPORT_SECONDS = 20.0

Row = dict[str, Any]


@dataclass(frozen=True)
class Budget:
    """When a campaign ends: whatever comes first.

    Attributes:
        minutes: Time; None without limit.
        cases: Jobs; None without limit.
        limit_seconds: Of one job.
    """

    minutes: float | None
    cases: int | None
    limit_seconds: float = 150.0


def run_campaign(
    serve: Serve[Any],
    settings: object,
    jobs: Iterator[int],
    budget: Budget,
    workers: int,
    log: TextIO,
    tell: Callable[[str], None] | None = None,
) -> list[Row]:
    """Do jobs until the budget is spent.

    Args:
        serve: What a worker does; answers a job with a row that has an ``outcome``.
        settings: For every worker.
        jobs: Seeds.
        budget: When to end.
        workers: Processes.
        log: Gets a line of JSON for each row.
        tell: Told of the progress; prints to standard error by default.
    """
    say = tell or (lambda text: print(text, file=sys.stderr, flush=True))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    cores = sorted(os.sched_getaffinity(0))
    alone = workers >= len(cores)  # else workers may go where there is room
    crew: list[Worker[int, Any]] = [
        Worker(serve, settings, cores[n % len(cores)] if alone else None) for n in range(workers)
    ]
    state = _State(time.monotonic(), budget)
    rows: list[Row] = []
    try:
        while True:
            for worker in crew:
                seed = next(jobs, None) if worker.job is None and state.goes_on else None
                if seed is not None:
                    worker.give(seed)
                    state.given += 1
            busy = [worker for worker in crew if worker.job is not None]
            if not busy:
                return rows
            for row in _collect(busy, budget):
                rows.append(row)
                state.counts[row["outcome"]] += 1
                log.write(json.dumps(row) + "\n")
            state.report(len(rows), say)
    finally:
        for worker in crew:
            worker.close()


class _State:
    def __init__(self, begun: float, budget: Budget) -> None:
        self.begun, self.budget = begun, budget
        self.counts: Counter[str] = Counter()
        self.given = 0
        self._told = begun

    @property
    def goes_on(self) -> bool:
        minutes, cases = self.budget.minutes, self.budget.cases
        late = minutes is not None and time.monotonic() - self.begun > 60 * minutes
        return not late and (cases is None or self.given < cases)

    def report(self, done: int, say: Callable[[str], None]) -> None:
        now = time.monotonic()
        if now - self._told < REPORT_SECONDS or not done:
            return
        self._told = now
        passed = now - self.begun
        ends = []
        if self.budget.minutes is not None:
            ends.append(60 * self.budget.minutes - passed)
        if self.budget.cases is not None:
            ends.append(passed / done * (self.budget.cases - done))
        counts = ", ".join(f"{n} {outcome}" for outcome, n in self.counts.most_common())
        left = f", {max(0.0, min(ends)) / 60:.1f} min left" if ends else ""
        say(f"{done} done, {done / passed:.2f}/s{left}: {counts}")


def _collect(busy: list[Worker[int, Any]], budget: Budget) -> Iterator[Row]:
    """The rows of workers that are done, died, or took too long."""
    ready = set(wait([worker.connection for worker in busy], timeout=1.0))
    for worker in busy:
        seed, passed = worker.job, time.monotonic() - worker.began
        if worker.connection in ready:
            try:
                answer = worker.take()
                if answer != READY:
                    yield {"seed": seed, **answer}
            except EOFError as death:
                yield {"seed": seed, "outcome": "death", "words": str(death), "seconds": passed}
        elif passed > (budget.limit_seconds if worker.is_ready else START_SECONDS):
            worker.close()
            words = f"took longer than {budget.limit_seconds:g} s"
            yield {"seed": seed, "outcome": "hang", "words": words, "seconds": passed}


def seeds(first: int, shard: tuple[int, int]) -> Iterator[int]:
    """Seeds from ``first`` on; shard i of n takes each n-th."""
    seed = first + shard[0]
    while True:
        yield seed
        seed += shard[1]


QUIET = ("right", "refused", "same", "different", "invalid", "rejected")


def table(rows: list[Row]) -> str:
    """Counts by outcome, and the seeds of what is bad."""
    seconds = [row.get("seconds", 0.0) for row in rows]
    planned = sum(bool(row.get("planned")) for row in rows)
    lines = []
    for key, title in (("outcome", "outcome"), ("unchecked", "without checks")):
        counts = Counter(row[key] for row in rows if row.get(key))
        if counts:
            lines.append(f"{title:<18} {'cases':>7}  seeds")
        for outcome, count in counts.most_common():
            seeds = [str(row["seed"]) for row in rows if row.get(key) == outcome][:12]
            lines.append(f"{outcome:<18} {count:>7}  {' '.join(seeds) * (outcome not in QUIET)}")
    unsure = sum(bool(row.get("inconclusive")) for row in rows)
    said = f"{len(rows)} cases, {planned} with a plan, {unsure} of these inconclusive"
    lines.append(f"{said}, {sum(seconds):.0f} s of workers")
    return "\n".join(lines)


def open_log(folder: Path, name: str) -> TextIO:
    """The file of rows, compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    return gzip.open(folder / name, "wt", encoding="utf-8")
