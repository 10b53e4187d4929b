"""Schedules that will be measured are instantiated and compiled while others are measured.

One thread scores and instantiates, in the order in which schedules were expected; the compile pool's
threads wait for its processes. What fails in a thread is raised where its result is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from wpk.build import Compilation
from wpk.candidate import Candidate
from wpk.kernel_source import KernelSource
from wpk.problems import Problem
from wpk.search.models import Finalist, finalist_of
from wpk.targets import Target

Submit = Callable[[KernelSource], Future[Compilation]]
"""Has a kernel compiled; `wpk.build.pool.CompilePool.submit` is one."""


@dataclass(frozen=True)
class KernelOrder:
    """An order is a generated candidate of a problem, to be compiled."""

    problem: Problem
    candidate: Candidate


@dataclass(frozen=True)
class Delivery:
    """A delivery is a candidate with the outcome of each of its kernels."""

    finalist: Finalist
    outcomes: tuple[Compilation, ...]


@dataclass(frozen=True)
class _Work:
    """A candidate whose kernels are waited for."""

    finalist: Finalist
    kernels: tuple[Future[Compilation], ...]


@dataclass
class _Kernel:
    """A kernel that compiles, or has, and how many schedules it belongs to."""

    outcome: Future[Compilation]
    users: int = 0


class CompileAhead:
    """This object compiles what is expected, in that order, and what nobody expected when it is needed.

    Use it as a context manager: on leaving, nothing more begins. The pool ends what has begun.
    """

    def __init__(self, target: Target, submit: Submit) -> None:
        """Begin with nothing expected."""
        self._target, self._submit = target, submit
        self._works: dict[KernelOrder, Future[_Work]] = {}
        self._thread = ThreadPoolExecutor(1, "wpk-instantiate")
        self._kernels: dict[str, _Kernel] = {}  # by digest; only that thread uses it

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Drop all that has not begun."""
        self.drop(tuple(self._works))
        self._thread.shutdown()

    def expect(self, orders: Sequence[KernelOrder]) -> None:
        """Begin with these after all that was expected before."""
        for each in orders:
            if each not in self._works:
                self._works[each] = self._thread.submit(self._begin, each)

    def drop(self, orders: Sequence[KernelOrder]) -> None:
        """Forget these; a kernel that has not begun to compile is not compiled if only they need it."""
        for each in orders:
            work = self._works.pop(each, None)
            if work is not None and not work.cancel():
                self._thread.submit(self._end, work)

    def get(self, orders: Sequence[KernelOrder]) -> list[Delivery]:
        """Return each with its kernels; wait for them.

        Raises:
            CompileError: The compile cache cannot be read or written.
        """
        self.expect(orders)
        works = [self._works[each].result() for each in orders]
        return [
            Delivery(each.finalist, tuple(kernel.result() for kernel in each.kernels))
            for each in works
        ]

    def compilations(self) -> list[Compilation]:
        """Return the kernels of all that was not dropped; wait for them."""
        every = (outcome for each in self.get(tuple(self._works)) for outcome in each.outcomes)
        return list({outcome.source.digest: outcome for outcome in every}.values())

    def _begin(self, order: KernelOrder) -> _Work:
        finalist = finalist_of(order.problem, order.candidate, self._target)
        return _Work(finalist, tuple(map(self._kernel, finalist.sources)))

    def _kernel(self, source: KernelSource) -> Future[Compilation]:
        kernel = self._kernels.get(source.digest)
        if kernel is None:
            kernel = self._kernels[source.digest] = _Kernel(self._submit(source))
        kernel.users += 1
        return kernel.outcome

    def _end(self, work: Future[_Work]) -> None:
        for source in work.result().finalist.sources:
            kernel = self._kernels[source.digest]
            kernel.users -= 1
            if kernel.users == 0 and kernel.outcome.cancel():
                del self._kernels[source.digest]
