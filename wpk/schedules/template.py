"""What a schedule template is: a family of kernels for one kind of problem."""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from math import prod
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from wpk.candidate import Configuration, Maker
from wpk.extent import MAX_SIZE
from wpk.kernel_source import KernelSource
from wpk.launch import Launch
from wpk.performance import Columns, Rows, SharedAccess, Work, at_rows, resident_blocks
from wpk.problems import Problem
from wpk.schedules.limit import Figures, Limit, meeting
from wpk.targets import Target


@dataclass(frozen=True)
class Schedule:
    """One point in a template's space. Subclasses hold one int a field; derived values are properties."""

    def parameters(self) -> Configuration:
        """Return the names and values in the order of the fields, as trials and plans store them."""
        return tuple(asdict(self).items())

    def columns(self) -> Columns:
        """Return the schedule as columns of one row, for what is computed over many schedules at once."""
        return {name: np.asarray([value]) for name, value in self.parameters()}

    def __str__(self) -> str:
        """``block_m=128 block_n=64 stages=3``."""
        return " ".join(f"{name}={value}" for name, value in self.parameters())


_MOST_THREADS = 1024
"""Of a block; no kernel has more for an element, either."""

P = TypeVar("P", bound=Problem)
S = TypeVar("S", bound=Schedule)


class ScheduleTemplate(abc.ABC, Generic[P, S]):
    """A family of kernels for one kind of problem.

    Attributes:
        name: The template's and its header's name, e.g. ``conv_mma``.
        version: Raised whenever the same problem and schedule give another kernel.
        problem_type: Kind of problem that it computes.
        schedule_type: Frozen dataclass of its parameters.
        on_tensor_cores: Whether its products are the tensor cores'.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    on_tensor_cores: ClassVar[bool] = False
    problem_type: type[P]
    schedule_type: type[S]

    @abc.abstractmethod
    def why_not(self, problem: P, target: Target) -> str | None:
        """Say why the template cannot compute this problem on this target, in words; None if it can."""

    @abc.abstractmethod
    def axes(self, problem: P, target: Target) -> dict[str, tuple[int, ...]]:
        """Return the values to try for each parameter, given the problem (at most about 10^6 combinations)."""

    @abc.abstractmethod
    def limits(self, problem: P) -> Sequence[Limit]:
        """Return what the kernel can compute, over the parameters; the unit asserts each."""

    def target_limits(self, problem: P, target: Target) -> Sequence[Limit]:
        """Return what the target can hold, and what pays there, over the parameters and `figures`."""
        return ()

    def figures(
        self, problem: P, columns: Columns, work: Callable[[], Work], target: Target
    ) -> Figures:
        """Return what `target_limits` speak of besides parameters; of schedules within the `limits`.

        Args:
            problem: The problem.
            columns: The schedules.
            work: What they make the GPU do; counted when it is called for.
            target: The GPU.
        """
        del problem, columns
        return WorkFigures(work, target)

    @abc.abstractmethod
    def work(self, problem: P, columns: Columns, target: Target) -> Work:
        """Return what each schedule makes the GPU do."""

    @abc.abstractmethod
    def instantiate(self, problem: P, schedule: S) -> tuple[KernelSource, ...]:
        """Return the kernels: each an include and one instantiation."""

    @abc.abstractmethod
    def launches(self, problem: P, schedule: S) -> tuple[Launch, ...]:
        """Return how the kernels are launched, in sequence."""

    def shared_accesses(self, problem: P, schedule: S) -> Sequence[SharedAccess]:
        """Return the shared-memory loads of a warp in one step; none where none can conflict."""
        return ()

    def accesses_of(self, problem: P) -> Callable[[S], Sequence[SharedAccess]]:
        """Return `shared_accesses` of a problem's schedules: what all of them share is made once."""
        return partial(self.shared_accesses, problem)

    def packing(self, problem: P, schedule: S) -> str | None:
        """Return the name of the packing (`wpk.schedules.packings`) of the constant operand, if there is one."""
        return None

    def access_keys(self, problem: P, columns: Columns) -> Columns:
        """Return what the costs of `shared_accesses` depend on, as columns: schedules that agree in them load alike.

        By default all parameters, and nothing where a template says nothing of its loads.
        """
        del problem
        if getattr(self.shared_accesses, "__func__", None) is ScheduleTemplate.shared_accesses:
            return {}
        return columns

    def access_context(self, problem: P) -> Hashable | None:
        """Return what these costs depend on besides: schedules of problems with equal ones load alike, too.

        None, by default: of other problems nothing is known.
        """
        del problem
        return None

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """Tell which schedules are pruned together: a number for each; all the same by default.

        A template tells apart ways of computing between which the score cannot decide: then none
        of them is pruned away for what it says of another.
        """
        return np.zeros(len(next(iter(columns.values()))), np.int64)

    @property
    @final
    def maker(self) -> Maker:
        """Who makes its kernels, as candidates say it."""
        return Maker(self.name, str(self.version))

    @final
    def space(self, problem: P, target: Target) -> tuple[int, Columns]:
        """Return the number of all combinations, and the legal ones as columns."""
        found = self.legal_space(problem, target)
        return found.combinations, found.columns

    @final
    def legal_space(self, problem: P, target: Target) -> LegalSpace:
        """Return the legal schedules, and their work where telling them from others counted it."""
        axes = self.axes(problem, target)
        limits, target_limits = self._all_limits(problem, target)
        figured = [each for each in limits if not each.names <= axes.keys()]
        columns, work = self._legal(_grid(axes, limits), (figured, target_limits), problem, target)
        return LegalSpace(prod(map(len, axes.values())), columns, work)

    @final
    def legal_among(self, schedules: Sequence[S], problem: P, target: Target) -> list[S]:
        """Return those of some schedules, at least one, that are legal: `why_illegal` of many at once."""
        # mypy does not see that a class, as a type variable, is hashable.
        names = parameter_names(self.schedule_type)  # type: ignore[arg-type]
        columns = {name: np.asarray([getattr(each, name) for each in schedules]) for name in names}
        legal, _ = self._legal(columns, self._all_limits(problem, target), problem, target)
        return [self.schedule(legal, row) for row in range(len(legal[names[0]]))]

    def _legal(
        self, columns: Columns, limits: Sequence[Sequence[Limit]], problem: P, target: Target
    ) -> tuple[Columns, Work | None]:
        """The schedules that meet all limits, each set asked of what meets those before, and their work if it was counted."""
        counted: list[Work] = []

        def work() -> Work:
            if not counted:
                counted.append(self.work(problem, columns, target))
            return counted[0]

        def keep(met: NDArray[np.bool_]) -> Columns:
            if met.all():
                return columns
            rows = np.flatnonzero(met)
            counted[:] = [at_rows(each, rows) for each in counted]
            return _taken(columns, rows)

        for beyond in filter(None, limits):
            figures = self._with_figures(beyond, problem, columns, work, target)
            columns = keep(meeting(beyond, figures))
        if _may_be_uncounted(problem):
            columns = keep(_grid_threads(work()) <= MAX_SIZE)
        return columns, counted[0] if counted else None

    @final
    def why_illegal(self, problem: P, schedule: S, target: Target) -> str | None:
        """Say why this schedule is illegal for the problem on the target, in words; None if legal."""
        columns = schedule.columns()
        work = cache(partial(self.work, problem, columns, target))
        for limits in self._all_limits(problem, target):
            figures = self._with_figures(limits, problem, columns, work, target)
            for limit in limits:
                if not limit.holds(figures)[0]:
                    return limit.refusal(figures)
        if _may_be_uncounted(problem):
            threads = _grid_threads(work())[0]
            if threads > MAX_SIZE:
                return f"{threads:.0f} threads, kernels count at most {MAX_SIZE}"
        return None

    def _all_limits(self, problem: P, target: Target) -> tuple[Sequence[Limit], Sequence[Limit]]:
        """In their order: the figures of the second are only those of what meets the first."""
        return self.limits(problem), self.target_limits(problem, target)

    def _with_figures(
        self,
        limits: Sequence[Limit],
        problem: P,
        columns: Columns,
        work: Callable[[], Work],
        target: Target,
    ) -> Figures:
        """The columns, and the figures that limits speak of."""
        asked = frozenset[str]().union(*(limit.names for limit in limits)) - columns.keys()
        if not asked:
            return columns
        figures = self.figures(problem, columns, work, target)
        return {**{name: figures[name] for name in figures if name in asked}, **columns}

    @final
    def schedule(self, columns: Columns, row: int) -> S:
        """Return the schedule at one row of a set of columns."""
        # mypy does not see that a class, as a type variable, is hashable.
        names = parameter_names(self.schedule_type)  # type: ignore[arg-type]
        return self.schedule_type(**{name: int(columns[name][row]) for name in names})

    @final
    def schedule_from(self, parameters: Configuration) -> S:
        """Return the schedule with these parameters, as stored in a trial or a plan."""
        return self.schedule_type(**dict(parameters))


@dataclass(frozen=True)
class LegalSpace:
    """The legal schedules of a template for a problem on a target.

    Attributes:
        combinations: How many combinations of parameters there are, legal or not.
        columns: The legal ones, in the order of the axes.
        work: What they make the GPU do; None where nobody had to count it.
    """

    combinations: int
    columns: Columns
    work: Work | None


class WorkFigures(Mapping[str, NDArray[Any]]):
    """Figures of schedules that follow from their work: each is counted when it is asked for."""

    _OF: ClassVar[dict[str, Callable[[Work, Target], Any]]] = {
        "threads": lambda work, _: work.threads,
        "shared_bytes": lambda work, _: work.shared_bytes,
        "registers": lambda work, _: work.registers,
        "blocks": lambda work, _: work.blocks,
        "steps": lambda work, _: work.steps,
        "turns": lambda work, _: np.broadcast_to(work.turns, work.blocks.shape),
        "resident": resident_blocks,
    }

    def __init__(self, work: Callable[[], Work], target: Target) -> None:
        """Take what counts the work, and the GPU."""
        self._work, self._target = work, target

    def __getitem__(self, name: str) -> NDArray[Any]:
        """One figure, an entry a schedule."""
        figure: NDArray[Any] = self._OF[name](self._work(), self._target)
        return figure

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._OF)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._OF)


def _grid_threads(work: Work) -> NDArray[np.float64]:
    """Return the threads of each schedule's whole grid."""
    return np.asarray(work.blocks * work.threads, np.float64)


def _may_be_uncounted(problem: Problem) -> bool:
    """Tell whether a schedule may have more threads than kernels, or a grid, can count in 32 bits."""
    inputs, output = problem.accesses()
    sizes = [1]
    for access in (*inputs, output):
        extents = () if access is None else access.extents
        fixed = [extent for extent in extents if isinstance(extent, int)]
        free = problem.leading.value if len(fixed) < len(extents) else 1
        sizes.append(prod(fixed) * free)
    return max(sizes) > MAX_SIZE // _MOST_THREADS


def _grid(axes: Mapping[str, tuple[int, ...]], limits: Sequence[Limit]) -> Columns:
    """Return all combinations that meet the limits over parameters alone, in the order of the axes.

    A limit is asked as soon as the parameters that it speaks of are there, not of every combination with others.
    """
    columns: Columns = {}
    count = 1
    named = [(each, each.names) for each in limits]
    for name, choices in axes.items():
        if len(choices) != 1:
            columns = {of: np.repeat(values, len(choices)) for of, values in columns.items()}
        columns[name] = np.tile(np.asarray(choices, np.int64), count)
        fresh = (each for each in named if name in each[1] or not each[1])
        ready = [limit for limit, names in fresh if names <= columns.keys()]
        if ready:
            met = meeting(ready, columns)
            if not met.all():
                columns = _taken(columns, np.flatnonzero(met))
        count = len(columns[name])
    return columns


def _taken(columns: Columns, rows: Rows) -> Columns:
    return {name: values.take(rows) for name, values in columns.items()}


@cache
def parameter_names(schedule_type: type[Schedule]) -> tuple[str, ...]:
    """Return the names of a schedule's parameters, in the order of its fields."""
    return tuple(field.name for field in fields(schedule_type))
