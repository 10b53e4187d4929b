"""Measure every legal schedule of small problems on this machine's GPUs, as recordings to search again.

    python benchmarks/space_study.py --only 'conv*' --gpus 8 --output spaces

One recording a problem and template (`wpk.search.searchers.replay`), in the order of the space. Each schedule is
checked before it is timed, with operands in L2; the fastest of a problem are then timed again in turns,
and those times take the place of the first. A finished problem is kept: start again to go on.
`benchmarks/searcher_study.py` reads the folder.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).parent))  # Python's safe path leaves a script's folder out

from study_bench import Bench, SingleKernel
from study_problems import ROWS, Row, Template, legal_count, templates_of

import wpk
from wpk.backends import GpuProcess
from wpk.build import CompilePool, KernelCache, load_nvrtc
from wpk.device import Patience
from wpk.kernel_source import KernelSource
from wpk.search.searchers.replay import Recording, write_recording
from wpk.search.searchers.space import SearchSpace
from wpk.targets.registry import find_target
from wpk.trial import Status, Trial

TARGET = find_target("h200")

ROUGH = Patience(least=5, most=9, noise=0.01, seconds=0.01)
"""For each schedule of a space."""

CLOSE = Patience(least=11, most=31, noise=0.005, seconds=0.05)
"""For each round of the fastest."""

FINALISTS, ROUNDS = 48, 3
"""The fastest of a problem over all templates, and how often they are timed in turns."""

_DIGITS = 4  # of a time: a hundredth of a per cent, far below its noise

_gpu = 0
"""Which GPU this process uses."""


@dataclass(frozen=True)
class Space:
    """The legal schedules of one template, with their kernels."""

    template: Template
    space: SearchSpace
    candidates: tuple[SingleKernel, ...]

    @classmethod
    def of(cls, problem: Row, template: Template) -> "Space":
        """All of them, in the order of the space."""
        _, columns = template.space(problem, TARGET)
        space = SearchSpace(template.schedule_type, columns, problem.features())
        schedules = [space.schedule(row) for row in range(space.size)]
        return cls(template, space, tuple(SingleKernel.of(problem, template, s) for s in schedules))


def record(row: str, workers: int, folder: Path) -> str:
    """Measure one row and write its recordings; a line about it."""
    start, problem = time.monotonic(), ROWS[row]
    spaces = [Space.of(problem, template) for template in templates_of(problem, TARGET)]
    trials: dict[SingleKernel, Trial] = {}
    with tempfile.TemporaryDirectory() as cache, Bench(problem, _gpu) as bench:
        with CompilePool(TARGET.arch, cache=KernelCache(Path(cache)), workers=workers) as pool:
            for candidate, outcome in _compiled(spaces, pool):
                if isinstance(outcome, bytes):
                    bench.kernels[candidate.source.digest] = outcome
                    trials[candidate] = bench.trial(candidate, ROUGH)
                else:
                    trials[candidate] = outcome
        trials |= retime(bench, trials)
        device = bench.device
    for space in spaces:
        found = tuple(_rounded(trials[candidate]) for candidate in space.candidates)
        features, name = problem.features(), space.template.name
        recording = Recording(device, row, features, name, space.space.names, found)
        _write(recording, folder / f"{row}-{name}.jsonl")
    counts = Counter(trial.status.value for trial in trials.values())
    best = min(trial.cost for trial in trials.values()) * 1e6
    took = time.monotonic() - start
    return f"{row}: {len(trials)} in {took:.0f} s, best {best:.3f} us, {dict(counts)}"


def _compiled(
    spaces: Sequence[Space], pool: CompilePool
) -> Iterator[tuple[SingleKernel, bytes | Trial]]:
    """Each candidate with its machine code or its failure, as compiles end."""
    waiting: dict[KernelSource, list[SingleKernel]] = {}
    for space in spaces:
        for candidate in space.candidates:
            waiting.setdefault(candidate.source, []).append(candidate)
    for outcome in pool.compile(waiting):
        for candidate in waiting[outcome.source]:
            if outcome.kernel is not None:
                yield candidate, outcome.kernel.cubin
                continue
            why = outcome.error.what if outcome.error else ""
            yield candidate, Trial(candidate.candidate, outcome.status, (), why)


class Timer(Protocol):
    """What `retime` needs of a bench."""

    def trial(self, candidate: SingleKernel, patience: Patience) -> Trial:
        """See `Bench.trial`."""


def retime(bench: Timer, trials: dict[SingleKernel, Trial]) -> dict[SingleKernel, Trial]:
    """The fastest, timed in rounds; each begins with another one, so that no place is favoured."""
    ran = [candidate for candidate in trials if trials[candidate].status is Status.OK]
    finalists = sorted(ran, key=lambda candidate: trials[candidate].cost)[:FINALISTS]
    rounds = [finalists[turn:] + finalists[:turn] for turn in range(min(ROUNDS, len(finalists)))]
    again: dict[SingleKernel, Trial] = {}
    for candidate in (each for order in rounds for each in order):
        trial = bench.trial(candidate, CLOSE)
        before = again.get(candidate, trial)
        failed = next((t for t in (before, trial) if t.status is not Status.OK), None)
        both = before.seconds + trial.seconds if before is not trial else trial.seconds
        again[candidate] = failed or Trial(candidate.candidate, Status.OK, both)
    return again


def _rounded(trial: Trial) -> Trial:
    seconds = tuple(float(f"{value:.{_DIGITS}g}") for value in trial.seconds)
    return Trial(trial.candidate, trial.status, seconds, trial.detail[:200])


def _write(recording: Recording, path: Path) -> None:
    """Write whole or not at all."""
    partial = path.with_suffix(".partial")
    write_recording(recording, partial)
    partial.replace(path)


def is_recorded(row: str, folder: Path) -> bool:
    """Whether all templates of a row have their recording."""
    names = [template.name for template in templates_of(ROWS[row], TARGET)]
    return all((folder / f"{row}-{name}.jsonl").is_file() for name in names)


def _take_gpu(ordinals: Any) -> None:
    global _gpu
    _gpu = ordinals.get()


def _size(row: str) -> int:
    return sum(legal_count(ROWS[row], t, TARGET) for t in templates_of(ROWS[row], TARGET))


def _machine(commit: str, gpus: int) -> dict[str, object]:
    with GpuProcess() as gpu:
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "commit": commit,
            "gpu": gpu.name,
            "gpus": gpus,
            "driver": gpu.facts.driver,
            "cuda_driver_api": gpu.facts.cuda_api,
            "nvrtc": ".".join(map(str, load_nvrtc().version)),
            "wpk": wpk.__version__,
            "command": "python benchmarks/space_study.py --only ROW --output FOLDER",
        }


def main() -> None:
    """Measure the rows asked for that the folder does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="ROW", nargs="*", default=["*"], help="with wildcards")
    parser.add_argument("--output", type=Path, required=True, help="folder of recordings")
    parser.add_argument("--gpus", type=int, default=1, help="GPUs to use, a row each at a time")
    parser.add_argument("--commit", default="unknown", help="of this repository, for the record")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = [row for row in ROWS if any(fnmatch(row, pattern) for pattern in options.only)]
    rows = [row for row in rows if not is_recorded(row, options.output)]
    if not rows:
        raise SystemExit(f"no row to measure matches {options.only}; rows are {', '.join(ROWS)}")
    machine = json.dumps(_machine(options.commit, options.gpus), indent=1)
    (options.output / "machine.json").write_text(machine + "\n", encoding="utf-8")
    workers = max(1, len(os.sched_getaffinity(0)) // options.gpus - 2)  # timing needs its own
    context = multiprocessing.get_context("spawn")
    ordinals = context.Queue()
    for ordinal in range(options.gpus):
        ordinals.put(ordinal)
    with ProcessPoolExecutor(options.gpus, context, _take_gpu, (ordinals,)) as processes:
        largest_first = sorted(rows, key=_size, reverse=True)
        work = [processes.submit(record, row, workers, options.output) for row in largest_first]
        for done in as_completed(work):
            print(done.result(), flush=True)


if __name__ == "__main__":
    main()
