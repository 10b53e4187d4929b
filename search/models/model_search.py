"""The static search of a model compiles the finalists of all of its distinct problems together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wpk.build import Compilation, CompiledKernel
from wpk.kernel_source import KernelSource
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.models.kernel_choice import KernelChoice, choose, no_choice
from wpk.search.models.load_costs import Template
from wpk.search.models.pruning import WAVES, Pruning
from wpk.search.models.static_search import (
    FINALISTS,
    Finalist,
    Shortlists,
    shortlist_problems,
)
from wpk.targets import Target

Compiler = Callable[[Iterable[KernelSource]], Iterable[Compilation]]
"""Compiles kernels as they come, in any order; `wpk.build.pool.CompilePool.compile` is one."""


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

    Every round compiles the next `FINALISTS` schedules of each problem that has none yet (`choose_among`).

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
    scored = shortlist_problems(problems, templates, target, skip, progress, pruning)
    return choose_among(scored, compiler, progress)


def choose_among(
    scored: Iterable[Shortlists],
    compiler: Compiler,
    progress: Progress,
    count: int | None = None,
) -> StaticChoices:
    """Choose a schedule for each problem that is shortlisted; the first compile while others are scored.

    Args:
        scored: What the models have to say of each problem, taken as it comes.
        compiler: Compiles the schedules that the models like best.
        progress: Told of compiling.
        count: How many of a problem's are compiled in a round; None is `FINALISTS`.

    Raises:
        ScheduleError: A problem has no schedule that compiles; says why of each.
    """
    search = _ModelSearch(compiler, progress, FINALISTS if count is None else count)
    search.round(scored)
    while waiting := [p for p in search.shortlists if p not in search.choices]:
        search.round([search.shortlists[problem] for problem in waiting])
    return search.chosen()


class _ModelSearch:
    """The rounds of a static search: what was scored, instantiated, compiled and chosen so far."""

    def __init__(self, compiler: Compiler, progress: Progress, count: int) -> None:
        self.shortlists: dict[Problem, Shortlists] = {}
        self.choices: dict[Problem, KernelChoice] = {}
        self._compiler, self._progress, self._count = compiler, progress, count
        self._finalists: dict[Problem, tuple[Finalist, ...]] = {}
        self._compiled: dict[str, Compilation] = {}

    def round(self, scored: Iterable[Shortlists]) -> None:
        """Compile the next finalists of some problems, each as soon as it comes; choose where one of them can be used."""
        batches: dict[Problem, tuple[Finalist, ...]] = {}
        _compile(self._sources(scored, batches), self._compiled, self._compiler, self._progress)
        for problem, batch in batches.items():
            asked = self.shortlists[problem], self._finalists[problem], self._compiled
            choice = choose(*asked)
            if choice is None and len(batch) < self._count:
                choice = _last_resort(*asked)
            if choice is not None:
                self.choices[problem] = choice

    def chosen(self) -> StaticChoices:
        """The choices, where there is one for each problem."""
        kernels = {d: each.kernel for d, each in self._compiled.items() if each.kernel is not None}
        return StaticChoices(self.choices, kernels, self.shortlists)

    def _sources(
        self, scored: Iterable[Shortlists], batches: dict[Problem, tuple[Finalist, ...]]
    ) -> Iterator[KernelSource]:
        """Kernels of the next finalists, noted by their problem as they come."""
        for shortlists in scored:
            problem = shortlists.problem
            known = self._finalists.get(problem, ())
            batch = shortlists.finalists(len(known), self._count)
            self.shortlists[problem], self._finalists[problem] = shortlists, known + batch
            batches[problem] = batch
            for finalist in batch:
                yield from finalist.sources


def _compile(
    sources: Iterable[KernelSource],
    compiled: dict[str, Compilation],
    compiler: Compiler,
    progress: Progress,
) -> None:
    """Compile kernels that were not compiled yet, each once."""
    asked: set[str] = set()

    def fresh() -> Iterator[KernelSource]:
        for source in sources:
            if source.digest not in compiled and source.digest not in asked:
                asked.add(source.digest)
                yield source

    for done, outcome in enumerate(compiler(fresh()), start=1):
        compiled[outcome.source.digest] = outcome
        progress("compiling kernels", done, len(asked))


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
