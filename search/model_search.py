"""Static search of all distinct problems of a model, their finalists compiled together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from wpk.build.compiled import CompiledKernel
from wpk.build.pool import Compilation
from wpk.build.resources import KernelResources
from wpk.kernel_source import KernelSource
from wpk.problems import Problem
from wpk.search.library_pick import LibraryPick
from wpk.search.shortlist import Template
from wpk.search.static_search import (
    FINALISTS,
    Choice,
    Finalist,
    Prepared,
    choose,
    choose_spilling,
    no_choice,
    prepare,
)
from wpk.search.tune_record import Tuned
from wpk.targets.target import Target
from wpk.trial import Regime

Progress = Callable[[str, int, int], None]
Compiler = Callable[[Sequence[KernelSource]], Iterable[Compilation]]
"""Compiles kernels, in any order; `wpk.build.pool.CompilePool.compile` is one."""


@dataclass(frozen=True)
class Found:
    """The outcome of searching a model's problems.

    Attributes:
        choices: One of the templates' a problem; none is needed where a library is picked.
        kernels: Compiled kernels by source digest: at least those of the choices.
        prepared: What the models had to say of each problem.
        tuned: What measuring found, for the problems that were tuned.
        regime: What the caches held when they were measured; None without measuring.
        library: The library's best, for the problems that it computes correctly.
        picks: Problems that the library is to compute.
    """

    choices: dict[Problem, Choice]
    kernels: dict[str, CompiledKernel]
    prepared: dict[Problem, Prepared] = field(default_factory=dict)
    tuned: dict[Problem, Tuned] = field(default_factory=dict)
    regime: Regime | None = None
    library: dict[Problem, LibraryPick] = field(default_factory=dict)
    picks: frozenset[Problem] = frozenset()


def search_model(
    problems: Iterable[Problem],
    templates: Sequence[Template],
    target: Target,
    compiler: Compiler,
    progress: Progress,
    *,
    skip: Collection[str] = (),
) -> Found:
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
    waiting: dict[Problem, Prepared] = {}
    for done, problem in enumerate(distinct):
        progress("scoring schedules", done, len(distinct))
        waiting[problem] = prepare(problem, templates, target, skip)
    progress("scoring schedules", len(distinct), len(distinct))
    prepared = dict(waiting)
    finalists: dict[Problem, tuple[Finalist, ...]] = dict.fromkeys(distinct, ())
    compiled: dict[str, KernelResources | str] = {}
    kernels: dict[str, CompiledKernel] = {}
    choices: dict[Problem, Choice] = {}
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
    return Found(choices, kernels, prepared)


def _fresh(
    batches: Iterable[tuple[Finalist, ...]], compiled: dict[str, KernelResources | str]
) -> list[KernelSource]:
    sources = [source for batch in batches for each in batch for source in each.sources]
    return [s for s in dict.fromkeys(sources) if s.digest not in compiled]


def _settle(
    prepared: Prepared,
    finalists: Sequence[Finalist],
    compiled: dict[str, KernelResources | str],
    *,
    last: bool,
) -> Choice | None:
    """Return the choice, or None to compile more; a spilling kernel will do when nothing is left to compile."""
    choice = choose(prepared, finalists, compiled)
    if choice is None and last:
        choice = choose_spilling(prepared, finalists, compiled)
        if choice is None:
            raise no_choice(prepared, finalists, compiled)
    return choice
