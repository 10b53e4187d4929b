"""One GPU records the samples of several problems: chunk by chunk, so that whatever was recorded is of use.

The first schedules of every template come first, then chunks of kept ones and of grids in turn, of all
spaces of a tier in turn. What is left of the time goes to the fastest of each space, which are timed again
in rounds. Every outcome is on the disk before the next is measured.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import TextIO

from spaces.cases import Cases
from spaces.line_file import Header, Known, Told, problem_line, trial_line
from spaces.problems import PROBLEMS
from spaces.sampling import Sample
from wpk.backends import GpuProcess
from wpk.build import CompilePool, KernelCache
from wpk.candidate import Candidate
from wpk.device import Patience
from wpk.phases import Phases
from wpk.problems import Problem
from wpk.search.models import PROMISING
from wpk.targets import Target, target_of_gpu
from wpk.trial import Regime, Trial
from wpk.trial_bench import Bench, CompileAhead, GpuLease, OddShapes, Request, TrialRunner
from wpk.trial_bench.gpu_lease import OpenGpu

ROUGH = Patience(least=5, most=9, noise=0.01, seconds=0.01)
"""For each schedule."""

CLOSE = Patience(least=11, most=31, noise=0.005, seconds=0.05)
"""For each round of the fastest."""

CHUNK = 12
AHEAD = 24
"""Chunks that compile while one is measured: some 300 kernels keep 16 cores busy for seconds."""

FINALISTS, ROUNDS = 16, 2
"""The fastest of a space, and how many times they are timed again."""

ROUNDS_SHARE = 0.1
"""Of the time, for those."""

COMPILE_SECONDS = 20.0

_TRIALS_A_PROCESS = 1000
"""A process on a GPU keeps every kernel that it loaded."""

_SAID_SECONDS = 15.0


Tier = Mapping[str, Problem]
"""Problems by name, which are recorded together."""

Sampling = Callable[[Problem, Target], list[Sample]]
"""What of a problem is recorded, of each template."""


@dataclass
class Space:
    """A space is the sample of one template, with what is known of it, and what the models say of its schedules."""

    name: str
    problem: Problem
    sample: Sample
    told: Mapping[Candidate, Told]
    trials: dict[Candidate, Trial] = field(default_factory=dict)

    @property
    def header(self) -> Header:
        """What its record begins with."""
        found, parameters = self.sample, self.sample.kept[0].parameters()
        kept, grid = (
            tuple(tuple(v for _, v in each.parameters()) for each in part)
            for part in (found.kept, found.grid)
        )
        maker, names = found.template.maker, tuple(name for name, _ in parameters)
        return Header(
            self.name, maker.name, maker.version, names, found.legal, found.survivors, kept, grid
        )

    def chunks(self) -> list[list[Candidate]]:
        """The schedules to try, in chunks: the promising, then others of both parts in turn."""
        kept, grid = (
            [Candidate(self.sample.template.maker, each.parameters()) for each in part]
            for part in (self.sample.kept, self.sample.grid)
        )
        turns = chain.from_iterable(zip_longest(_parts(kept[PROMISING:]), _parts(grid)))
        planned: list[list[Candidate]] = [kept[:PROMISING], *(part for part in turns if part)]
        seen: set[Candidate] = set(self.trials)
        chunks = []
        for part in planned:
            chunks.append([each for each in part if each not in seen])
            seen.update(part)
        return [part for part in chunks if part]

    def fastest(self) -> list[Candidate]:
        """Those that are timed again."""
        ran = [each for each, trial in self.trials.items() if trial.ran]
        return sorted(ran, key=lambda each: self.trials[each].cost)[:FINALISTS]


def space_of(name: str, problem: Problem, sample: Sample, target: Target) -> Space:
    """Return a space of which nothing is measured yet."""
    maker = sample.template.maker
    told = {
        Candidate(maker, schedule.parameters()): said
        for schedule, said in sample.told(problem, target).items()
    }
    return Space(name, problem, sample, told)


def _parts(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    return [list(candidates[i : i + CHUNK]) for i in range(0, len(candidates), CHUNK)]


class Recorder:
    """A recorder measures on one GPU and writes a file of lines."""

    def __init__(
        self,
        output: TextIO,
        known: Known,
        end: float,
        open_gpu: OpenGpu,
        sampling: Sampling,
        commit: str,
        kernels: Path | None = None,
    ) -> None:
        """Describe it; nothing starts yet.

        Args:
            output: Gets the lines.
            known: What earlier calls recorded.
            end: Time of the monotonic clock at which nothing new begins.
            open_gpu: Starts the process that measures.
            sampling: Says what is recorded.
            commit: Of this repository, for the record.
            kernels: Folder of compiled kernels, in which new ones are kept; none are where there is none.
        """
        self._output, self._known, self._end = output, known, end
        self._sampling, self._commit, self._kernels = sampling, commit, kernels
        self._lease = GpuLease(open_gpu)
        self._trials, self._said = 0, time.monotonic()
        self._label = Path(output.name).stem

    def record(self, tiers: Sequence[Tier], workers: int) -> None:
        """Record problems, a tier after the other, until all is done or the time is over."""
        begun = time.monotonic()
        with self._lease, tempfile.TemporaryDirectory() as cache:
            gpu = self._lease.process()
            target = target_of_gpu(gpu.name, gpu.capability)
            about = {"device": gpu.name, "driver": gpu.facts.driver, "target": target.name}
            self._write(about | {"most_mhz": gpu.facts.clock / 1e6, "commit": self._commit})
            pool = CompilePool(
                target.arch,
                cache=KernelCache(self._kernels or Path(cache)),
                workers=workers,
                limit_seconds=COMPILE_SECONDS,
            )
            problems = [problem for tier in tiers for problem in tier.values()]
            with pool, Cases(problems) as cases, CompileAhead(target, pool.submit) as ahead:
                rough, close = (
                    Bench(
                        ahead,
                        TrialRunner(self._lease, cases, Regime.WARM, patience=patience),
                        OddShapes(target, self._lease, ahead),
                        Phases(),
                    )
                    for patience in (ROUGH, CLOSE)
                )
                spaces = [self._spaces(tier, target) for tier in tiers]
                self._sweep(spaces, rough, self._end - ROUNDS_SHARE * (self._end - begun))
                self._repeat([each for tier in spaces for each in tier], close)

    def _spaces(self, tier: Tier, target: Target) -> list[Space]:
        """All spaces of some problems, with what is known of them; new ones get their header."""
        found = []
        for name, problem in tier.items():
            if PROBLEMS.get(name) != problem and self._known.problems.get(name) != problem:
                self._write(problem_line(name, problem))
            for sample in self._sampling(problem, target):
                space = space_of(name, problem, sample, target)
                header = space.header
                if header.key in self._known.headers:
                    self._known.require_same(header)
                    space.trials = self._known.trials(header, sample.template.maker)
                else:
                    self._write(header.line())
                found.append(space)
        return found

    def _sweep(self, tiers: Sequence[Sequence[Space]], bench: Bench, until: float) -> None:
        """Try everything in its order, compiling ahead."""
        plan = [(space, part) for tier in tiers for space, part in _in_turn(tier)]
        total, done = sum(len(part) for _, part in plan), 0
        for place, (space, part) in enumerate(plan):
            if time.monotonic() >= until:
                break
            for after, wanted in plan[place : place + AHEAD]:
                bench.expect(_requests(after, wanted))
            for trial in bench.measure(_requests(space, part)):
                self._enter(space, trial, 0)
            bench.drop(_requests(space, part))
            done += len(part)
            self._say(
                f"{done} of {total} schedules, last {space.name} {space.sample.template.name}"
            )
        for space, part in plan:
            bench.drop(_requests(space, part))
        self._say(f"{done} of {total} schedules; the fastest are timed again", at_once=True)

    def _repeat(self, spaces: Sequence[Space], bench: Bench) -> None:
        """Time the fastest again, each round of a space beginning with another of them."""
        finalists = {id(space): space.fastest() for space in spaces}
        for turn in range(1, ROUNDS + 1):
            for space in spaces:
                mine = finalists[id(space)]
                if time.monotonic() >= self._end:
                    self._say("time is over", at_once=True)
                    return
                start = turn * len(mine) // (ROUNDS + 1)
                for trial in bench.measure(_requests(space, mine[start:] + mine[:start])):
                    self._enter(space, trial, turn)
                bench.drop(_requests(space, mine))
        self._say("done", at_once=True)

    def _enter(self, space: Space, trial: Trial, turn: int) -> None:
        space.trials[trial.candidate] = trial
        told = space.told[trial.candidate]
        self._write(trial_line(space.header.key, trial, turn, told))
        self._trials += 1
        if self._trials % _TRIALS_A_PROCESS == 0:
            self._lease.drop()

    def _write(self, line: Mapping[str, object]) -> None:
        self._output.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._output.flush()

    def _say(self, text: str, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if at_once or now - self._said >= _SAID_SECONDS:
            self._said = now
            left = max(0.0, self._end - now)
            sys.stderr.write(f"{self._label}: {text}; {left:.0f} s left\n")
            sys.stderr.flush()


def _in_turn(spaces: Sequence[Space]) -> Iterator[tuple[Space, list[Candidate]]]:
    """The chunks of some spaces, one of each in turn."""
    for turn in zip_longest(*([(s, part) for part in s.chunks()] for s in spaces)):
        yield from (each for each in turn if each is not None)


def _requests(space: Space, candidates: Sequence[Candidate]) -> list[Request]:
    return [Request(space.problem, each) for each in candidates]


def shares(tiers: Sequence[Tier], gpus: int) -> list[list[Tier]]:
    """Return the problems that each GPU records, by tier: they are dealt out in turn."""
    return [[dict(list(tier.items())[place::gpus]) for tier in tiers] for place in range(gpus)]


def gpu_opener(ordinal: int) -> OpenGpu:
    """Return what starts a process on one GPU."""
    return lambda: GpuProcess(ordinal)
