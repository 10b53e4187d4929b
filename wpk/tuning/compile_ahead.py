"""Schedules on their way to be measured: instantiated and compiled while others are measured.

One thread scores and instantiates, in the order in which schedules were expected; the compile pool's
threads wait for its processes. What fails in a thread is raised where its result is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from wpk.build import Compilation
from wpk.kernel_source import KernelSource
from wpk.performance.bound import bound
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATE_OF
from wpk.search.shortlist import score_one
from wpk.search.static_search import Finalist
from wpk.targets.target import Target

Submit = Callable[[KernelSource], Future[Compilation]]
"""Has a kernel compiled; `wpk.build.pool.CompilePool.submit` is one."""


@dataclass(frozen=True)
class Wanted:
    """A schedule of a problem, by its template's name and its parameters."""

    problem: Problem
    template: str
    schedule: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Built:
    """A schedule with the outcome of each of its kernels."""

    finalist: Finalist
    outcomes: tuple[Compilation, ...]


@dataclass(frozen=True)
class _Begun:
    """A schedule whose kernels are waited for."""

    finalist: Finalist
    kernels: tuple[Future[Compilation], ...]


@dataclass
class _Kernel:
    """A kernel that compiles, or has, and how many schedules it belongs to."""

    outcome: Future[Compilation]
    users: int = 0


class CompileAhead:
    """Compiles what is expected, in that order, and what nobody expected when it is needed.

    Use it as a context manager: on leaving, nothing more begins. The pool ends what has begun.
    """

    def __init__(self, target: Target, submit: Submit) -> None:
        """Begin with nothing expected."""
        self._target, self._submit = target, submit
        self._begun: dict[Wanted, Future[_Begun]] = {}
        self._thread = ThreadPoolExecutor(1, "wpk-instantiate")
        self._kernels: dict[str, _Kernel] = {}  # by digest; only that thread uses it

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Drop all that has not begun."""
        self.drop(tuple(self._begun))
        self._thread.shutdown()

    def expect(self, wanted: Sequence[Wanted]) -> None:
        """Begin with these after all that was expected before."""
        for each in wanted:
            if each not in self._begun:
                self._begun[each] = self._thread.submit(self._begin, each)

    def drop(self, wanted: Sequence[Wanted]) -> None:
        """Forget these; a kernel that has not begun to compile is not compiled if only they need it."""
        for each in wanted:
            begun = self._begun.pop(each, None)
            if begun is not None and not begun.cancel():
                self._thread.submit(self._end, begun)

    def get(self, wanted: Sequence[Wanted]) -> list[Built]:
        """Each with its kernels; waits for them.

        Raises:
            CompileError: The compile cache cannot be read or written.
        """
        self.expect(wanted)
        found = [self._begun[each].result() for each in wanted]
        return [
            Built(each.finalist, tuple(kernel.result() for kernel in each.kernels))
            for each in found
        ]

    def built(self) -> list[Compilation]:
        """The kernels of all that was not dropped; waits for them."""
        every = (outcome for each in self.get(tuple(self._begun)) for outcome in each.outcomes)
        return list({outcome.source.digest: outcome for outcome in every}.values())

    def _begin(self, wanted: Wanted) -> _Begun:
        problem, template = wanted.problem, TEMPLATE_OF[wanted.template]
        schedule = template.schedule_from(wanted.schedule)
        sources = template.instantiate(problem, schedule)
        kernels = [self._kernel(source) for source in sources]
        limit = bound(problem, self._target)
        finalist = Finalist(
            scored=score_one(problem, template, schedule, self._target, limit),
            template=template,
            sources=sources,
            launches=template.launches(problem, schedule),
        )
        return _Begun(finalist, tuple(kernels))

    def _kernel(self, source: KernelSource) -> Future[Compilation]:
        kernel = self._kernels.get(source.digest)
        if kernel is None:
            kernel = self._kernels[source.digest] = _Kernel(self._submit(source))
        kernel.users += 1
        return kernel.outcome

    def _end(self, begun: Future[_Begun]) -> None:
        for source in begun.result().finalist.sources:
            kernel = self._kernels[source.digest]
            kernel.users -= 1
            if kernel.users == 0 and kernel.outcome.cancel():
                del self._kernels[source.digest]
