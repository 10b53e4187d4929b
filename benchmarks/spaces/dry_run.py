"""What recording would do, on a machine without a GPU: every kernel is compiled, and its time on a GPU is reckoned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, prod
from pathlib import Path

from spaces.recorder import FINALISTS, ROUNDS, Sampling, Space, space_of
from spaces.sampling import Sample
from wpk.build import Compilation, CompilePool, KernelCache
from wpk.candidate import Candidate
from wpk.kernel_source import KernelSource
from wpk.problems import Problem
from wpk.search.models import spill_words
from wpk.targets import Target

TRIAL_SECONDS = 0.045
"""Of a trial on the GPU's machine: loading, checking, and up to nine samples. 8504 schedules and their rounds took 464 s on
an H100 (tests/replay/h100), a round of the fastest 0.05 s."""

ELEMENT_SECONDS, PATTERN_SECONDS = 5e-9, 60e-9
"""Of a core, for each element of the result: to compare it, and once a problem to say what is allowed
(docs/decisions/0077-checks-of-large-batches.md)."""

COMPARING_CORES = 8

START_SECONDS = 6.0
"""Until a GPU's process measures, and until the first reference is there. An assumption."""


@dataclass(frozen=True)
class DryProblem:
    """A problem, as its kernels compiled.

    Attributes:
        name: Of the problem.
        schedules: How many would be measured.
        faults: Of those that would not be, what the compiler says, by schedule.
        compile_seconds: Of a core, for kernels that were not in the folder.
        gpu_seconds: What measuring the others takes, the rounds of the fastest left out.
        round_seconds: What these take.
    """

    name: str
    schedules: int
    faults: Mapping[str, str]
    compile_seconds: float
    gpu_seconds: float
    round_seconds: float

    @property
    def seconds(self) -> tuple[float, float, float]:
        """Of compiling, of measuring, and of the rounds."""
        return self.compile_seconds, self.gpu_seconds, self.round_seconds


def dry_run(
    problems: Mapping[str, Problem],
    target: Target,
    sampling: Sampling,
    kernels: Path,
    workers: int | None = None,
) -> list[DryProblem]:
    """Compile all that would be recorded.

    Args:
        problems: By name.
        target: The GPU.
        sampling: Says what is recorded.
        kernels: Folder in which the kernels are kept: who measures need not compile them again.
        workers: Processes that compile; one a core by default.
    """
    with CompilePool(target.arch, cache=KernelCache(kernels), workers=workers) as pool:
        return [
            _tried(name, problem, sampling(problem, target), target, pool)
            for name, problem in problems.items()
        ]


def _tried(
    name: str, problem: Problem, samples: Sequence[Sample], target: Target, pool: CompilePool
) -> DryProblem:
    spaces = [space_of(name, problem, sample, target) for sample in samples]
    asked = {
        candidate: source
        for space in spaces
        for chunk in space.chunks()
        for candidate in chunk
        for source in _sources(space, candidate)
    }
    outcomes = {each.source: each for each in pool.compile(asked.values())}
    faults = {
        f"{candidate.maker.name} {_words(candidate)}": fault
        for candidate, source in asked.items()
        if (fault := _fault(outcomes[source])) is not None
    }
    elements = sum(prod(access.sizes) for access in problem.writes())
    each = TRIAL_SECONDS + elements * ELEMENT_SECONDS / COMPARING_CORES
    rounds = sum(min(FINALISTS, len(space.told)) * ROUNDS for space in spaces)
    return DryProblem(
        name,
        len(asked),
        faults,
        fsum(outcome.seconds for outcome in outcomes.values()),
        (len(asked) - len(faults)) * each + elements * PATTERN_SECONDS / COMPARING_CORES,
        rounds * each,
    )


def gpu_seconds(found: Sequence[DryProblem], cores: int) -> tuple[float, float]:
    """Return what recording takes where the kernels are there, and where they are compiled as it goes, in seconds.

    Args:
        found: All problems.
        cores: Of the GPU's machine.
    """
    measuring = START_SECONDS + fsum(each.gpu_seconds + each.round_seconds for each in found)
    compiling = fsum(each.compile_seconds for each in found) / max(1, cores - 2)
    return measuring, max(measuring, START_SECONDS + compiling)


def _sources(space: Space, candidate: Candidate) -> tuple[KernelSource, ...]:
    template = space.sample.template
    return tuple(
        template.instantiate(space.problem, template.schedule_from(candidate.configuration))
    )


def _fault(outcome: Compilation) -> str | None:
    if outcome.kernel is None:
        return f"{outcome.status.value}: {outcome.error}"
    return spill_words(outcome.kernel.resources) if outcome.kernel.resources.spills else None


def _words(candidate: Candidate) -> str:
    return " ".join(f"{name}={value}" for name, value in candidate.configuration)
