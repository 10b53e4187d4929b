"""Templates of matrix-like products by tiles, on tensor cores or on the ordinary ones."""

import abc
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Columns, SharedAccess, Work
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, Partials, SingleKernelTemplate
from wpk.schedules.split import split_limits, useful_split
from wpk.schedules.template import P, Schedule
from wpk.schedules.tiles.matrix import TileCosts, target_limits
from wpk.schedules.unit import Members
from wpk.schedules.views.matrix import MatrixSizes, MatrixView
from wpk.targets import Target


@dataclass(frozen=True)
class TileSchedule(Schedule, abc.ABC):
    """The tile of a block; subclasses say how it is computed.

    Attributes:
        block_m: Rows of a block (DeepCuts' H, W and N tile as one: output pixels).
        block_n: Columns of a block (K_block: filters).
        block_k: Elements of the reduction a step (C_input).
    """

    block_m: int
    block_n: int
    block_k: int

    if TYPE_CHECKING:  # subclasses have a field of this name, behind their others

        @property
        def split(self) -> int:
            """Blocks that share the reduction of a tile."""

    @property
    @abc.abstractmethod
    def threads(self) -> int:
        """Threads of a block."""

    @property
    def store_width(self) -> int:
        """Columns that a thread stores together at most."""
        return 8


T = TypeVar("T", bound=TileSchedule)
_T = TypeVar("_T", bound=TileSchedule, contravariant=True)


class Tiles(Protocol[_T]):
    """How a problem's tiles are computed."""

    def axes(self, sizes: MatrixSizes, target: Target) -> dict[str, tuple[int, ...]]:
        """Return the values to try for a product of these sizes; tiles far beyond it are left out."""

    def limits(self) -> Sequence[Limit]:
        """Return what the header and its loaders can compute."""

    def costs(self, columns: Columns) -> TileCosts:
        """Return what the models take into account."""

    def shared_accesses(self, schedule: _T) -> Sequence[SharedAccess]:
        """Return the loads of a step from shared memory, as the first warp makes them."""

    def access_keys(self, columns: Columns) -> Columns:
        """Return what the costs of these loads depend on."""

    @property
    def access_context(self) -> Hashable:
        """What they depend on besides."""


class MatrixTemplate(SingleKernelTemplate[P, T], abc.ABC, Generic[P, T]):
    """A product of matrices whose threads bring both operands to shared memory, tile by tile."""

    @abc.abstractmethod
    def _view(self, problem: P) -> MatrixView[Any]:
        """The problem as a product of matrices."""

    @abc.abstractmethod
    def _tiles(self, problem: P) -> Tiles[T]:
        """How its tiles are computed."""

    def _members(self, problem: P) -> Members:
        """Members of ``Problem`` that this header alone reads."""
        return {}

    def _axes(self, problem: P, target: Target) -> dict[str, tuple[int, ...]]:
        return self._tiles(problem).axes(self._view(problem).sizes, target)

    def _limits(self, problem: P) -> Sequence[Limit]:
        view = self._view(problem)
        (_, _, groups), reduction = view.grid(1, 1, 1), view.sizes.reduction
        return (*self._tiles(problem).limits(), *split_limits(reduction, groups))

    def _target_limits(self, problem: P, target: Target) -> Sequence[Limit]:
        return (*target_limits(target), useful_split(target))

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """See `ScheduleTemplate.families`: estimates are off by as much as a split decides, 15 %."""
        return np.asarray(columns["split"] > 1, np.int64)

    def work(self, problem: P, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        costs = self._tiles(problem).costs(columns)
        return self._view(problem).product(columns, target).work(columns, costs)

    def shared_accesses(self, problem: P, schedule: T) -> Sequence[SharedAccess]:
        """See `ScheduleTemplate.shared_accesses`."""
        return self.accesses_of(problem)(schedule)

    def accesses_of(self, problem: P) -> Callable[[T], Sequence[SharedAccess]]:
        """See `ScheduleTemplate.accesses_of`."""
        return self._tiles(problem).shared_accesses

    def access_keys(self, problem: P, columns: Columns) -> Columns:
        """See `ScheduleTemplate.access_keys`."""
        return self._tiles(problem).access_keys(columns)

    def access_context(self, problem: P) -> Hashable | None:
        """See `ScheduleTemplate.access_context`."""
        return self._tiles(problem).access_context

    def kernel(self, problem: P, schedule: T) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        view = self._view(problem)
        grid = view.grid(schedule.block_m, schedule.block_n, schedule.split)
        costs = self._tiles(problem).costs(schedule.columns())
        return KernelPlan(
            members={
                **self._members(problem),
                **view.members(schedule.store_width),
                **view.operand_members(),
            },
            grid=grid,
            threads=schedule.threads,
            shared_bytes=int(costs.shared_bytes[0]),
            partials=Partials.of(
                grid,
                schedule.block_m * schedule.block_n * problem.numbers.bytes,
                schedule.split,
            ),
        )
