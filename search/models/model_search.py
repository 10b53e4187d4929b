"""Static search of all distinct problems of a model, their finalists compiled together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from wpk.build import Compilation, CompiledKernel, KernelResources
from wpk.kernel_source import KernelSource
from wpk.problems import Problem
from wpk.search.models.shortlist import Template
from wpk.search.models.static_search import (
    FINALISTS,
    Finalist,
    KernelChoice,
    Shortlists,
    choose,
    choose_spilling,
    no_choice,
    shortlist_all,
)
from wpk.targets import Target

Progress = Callable[[str, int, int], None]
Compiler = Callable[[Sequence[KernelSource]], Iterable[Compilation]]
"""Compiles kernels, in any order; `wpk.build.pool.CompilePool.compile` is one."""


@dataclass(frozen=True)
class StaticChoices:
    """What the models choose for a model's problems.

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

    Raises:
        ScheduleError: A problem has no schedule that compiles; says why of each.
    """
    distinct = list(dict.fromkeys(problems))
    waiting: dict[Problem, Shortlists] = {}
    for done, problem in enumerate(distinct):
        progress("scoring schedules", done, len(distinct))
        waiting[problem] = shortlist_all(problem, templates, target, skip)
    progress("scoring schedules", len(distinct), len(distinct))
    shortlists = dict(waiting)
    finalists: dict[Problem, tuple[Finalist, ...]] = dict.fromkeys(distinct, ())
    compiled: dict[str, KernelResources | str] = {}
    kernels: dict[str, CompiledKernel] = {}
    choices: dict[Problem, KernelChoice] = {}
    while waiting:
        batches = {p: w.finalists(first=len(finalists[p])) for p, w in waiting.items()}
        sources = _fresh(batches.values(), compiled)
        for done, outcome in enumerate(compiler(sources), start=1):
            digest = outcome.source.digest
            if outcome.kernel is not None:
                kernels[digest] = outcome.kernel
                compiled[digest] = outcome.kernel.resources
            else:
                compiled[digest] = str(outcome.error)
            progress("compiling kernels", done, len(sources))
        for problem, batch in batches.items():
            finalists[problem] += batch
            choice = _settle(
                waiting[problem], finalists[problem], compiled, last=len(batch) < FINALISTS
            )
            if choice is not None:
                choices[problem] = choice
                del waiting[problem]
    return StaticChoices(choices, kernels, shortlists)


def _fresh(
    batches: Iterable[tuple[Finalist, ...]], compiled: dict[str, KernelResources | str]
) -> list[KernelSource]:
    sources = [source for batch in batches for each in batch for source in each.sources]
    return [s for s in dict.fromkeys(sources) if s.digest not in compiled]


def _settle(
    shortlists: Shortlists,
    finalists: Sequence[Finalist],
    compiled: dict[str, KernelResources | str],
    *,
    last: bool,
) -> KernelChoice | None:
    """Return the choice, or None to compile more; a spilling kernel will do when nothing is left to compile."""
    choice = choose(shortlists, finalists, compiled)
    if choice is None and last:
        choice = choose_spilling(shortlists, finalists, compiled)
        if choice is None:
            raise no_choice(shortlists, finalists, compiled)
    return choice
