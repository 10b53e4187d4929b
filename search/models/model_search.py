"""The static search of a model compiles the finalists of all of its distinct problems together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wpk.build import Compilation, CompiledKernel
from wpk.kernel_source import KernelSource
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.models.pruning import WAVES, Pruning
from wpk.search.models.shortlist import Template
from wpk.search.models.static_search import (
    FINALISTS,
    Finalist,
    KernelChoice,
    Shortlists,
    choose,
    no_choice,
    shortlist_problems,
)
from wpk.targets import Target

Compiler = Callable[[Sequence[KernelSource]], Iterable[Compilation]]
"""Compiles kernels, in any order; `wpk.build.pool.CompilePool.compile` is one."""


@dataclass(frozen=True)
class StaticChoices:
    """These are the choices of the performance models for a model's problems.

    Attributes:
        kernels: The schedule of each problem.
        compiled: Compiled kernels by source digest, those of the choices among them.
        shortlists: What the models have to say of each problem.
    """

    kernels: dict[Problem, KernelChoice]
    compiled: dict[str, CompiledKernel]
    shortlists: dict[Problem, Shortlists]


def search_model(
    problems: Iterable[Problem],
    templates: Sequence[Template],
    target: Target,
    compiler: Compiler,
    progress: Progress,
    *,
    skip: Collection[str] = (),
    pruning: Pruning = WAVES,
) -> StaticChoices:
    """Choose a schedule for each distinct problem.

    Every round compiles the next `FINALISTS` schedules of each problem that has none yet.

    Args:
        problems: What to compute; may repeat.
        templates: Where schedules come from.
        target: The GPU.
        compiler: Compiles the schedules that the models like best.
        progress: Told of scoring and compiling.
        skip: Names of templates not to use.
        pruning: What keeps schedules.

    Raises:
        ScheduleError: A problem has no schedule that compiles; says why of each.
    """
    shortlists = shortlist_problems(problems, templates, target, skip, progress, pruning)
    compiled: dict[str, Compilation] = {}
    finalists: dict[Problem, tuple[Finalist, ...]] = dict.fromkeys(shortlists, ())
    choices: dict[Problem, KernelChoice] = {}
    while waiting := [problem for problem in shortlists if problem not in choices]:
        batches = {p: shortlists[p].finalists(first=len(finalists[p])) for p in waiting}
        _compile(batches.values(), compiled, compiler, progress)
        for problem, batch in batches.items():
            finalists[problem] += batch
            choice = choose(shortlists[problem], finalists[problem], compiled)
            if choice is None and len(batch) < FINALISTS:
                choice = _last_resort(shortlists[problem], finalists[problem], compiled)
            if choice is not None:
                choices[problem] = choice
    kernels = {digest: each.kernel for digest, each in compiled.items() if each.kernel is not None}
    return StaticChoices(choices, kernels, shortlists)


def _compile(
    batches: Iterable[tuple[Finalist, ...]],
    compiled: dict[str, Compilation],
    compiler: Compiler,
    progress: Progress,
) -> None:
    """Compile the kernels of some finalists that were not compiled yet."""
    every = dict.fromkeys(source for batch in batches for each in batch for source in each.sources)
    sources = [source for source in every if source.digest not in compiled]
    for done, outcome in enumerate(compiler(sources), start=1):
        compiled[outcome.source.digest] = outcome
        progress("compiling kernels", done, len(sources))


def _last_resort(
    shortlists: Shortlists, finalists: Sequence[Finalist], compiled: Mapping[str, Compilation]
) -> KernelChoice:
    """A spilling kernel will do when nothing is left to compile.

    Raises:
        ScheduleError: Nothing compiled; says why of each.
    """
    choice = choose(shortlists, finalists, compiled, allow_spills=True)
    if choice is None:
        raise no_choice(shortlists, finalists, compiled)
    return choice
