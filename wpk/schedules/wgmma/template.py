"""What both templates of matrix-like products by warpgroups say alike."""

import abc
from collections.abc import Sequence
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.launch import TensorMapArgument
from wpk.performance import Columns, Work
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_epilogue import epilogue_members
from wpk.schedules.multiplication import multiply_type
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.unit import Members
from wpk.schedules.views.matrix import MatrixView, Product
from wpk.schedules.wgmma import costs, tiles
from wpk.schedules.wgmma.multicast import Multicast
from wpk.schedules.wgmma.residual import residual_of
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets import Target


class WgmmaTemplate(SingleKernelTemplate[Product, WgmmaSchedule], abc.ABC, Generic[Product]):
    """A product of matrices by warpgroups, both of whose operands TMA brings."""

    @abc.abstractmethod
    def _view(self, problem: Product) -> MatrixView[Any]:
        """The problem as a product of matrices."""

    @abc.abstractmethod
    def _members(self, problem: Product) -> Members:
        """Members of ``Problem`` that this header alone reads."""

    @abc.abstractmethod
    def _multiplied(self, problem: Product) -> tuple[DType, DType]:
        """Types in memory of A and B."""

    @abc.abstractmethod
    def _maps(self, problem: Product, schedule: WgmmaSchedule) -> tuple[TensorMapArgument, ...]:
        """Of A and of B."""

    def _axes(self, problem: Product, target: Target) -> dict[str, tuple[int, ...]]:
        return tiles.axes(
            self._view(problem).sizes, problem.precision, residual_of(problem), target
        )

    def _limits(self, problem: Product) -> Sequence[Limit]:
        reduction = self._view(problem).sizes.reduction
        return tiles.limits(reduction, problem.precision, residual_of(problem))

    def _target_limits(self, problem: Product, target: Target) -> Sequence[Limit]:
        return tiles.useful_limits(_multicast(self._view(problem)), problem.precision, target)

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """Tell apart split-K with and without a cluster, multicast, persistent blocks, and those of warpgroups in turns.

        Each with early launch or not: the score does not see the launch, nor what a cluster costs, nor what
        persistent blocks and turns save. Multicast with split-K are families, too.
        """
        ways = (columns["split"] > 1) + columns["cluster"] + 3 * (columns["share"] > 0)
        families: NDArray[np.int64] = (
            2 * (ways + 6 * ((columns["persistent"] > 0) + columns["pingpong"])) + columns["early"]
        )
        return families

    def work(self, problem: Product, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        view = self._view(problem)
        product = view.product(columns, target)
        return costs.work(product, _multicast(view), problem, columns, target)

    def kernel(self, problem: Product, schedule: WgmmaSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        view = self._view(problem)
        grid = schedule.grid(view.grid(schedule.block_m, schedule.block_n, schedule.split))
        residual = residual_of(problem)
        columns = schedule.columns()
        handed = int(costs.handed(problem, columns)[0])
        brought = residual if schedule.residual else None
        maps = self._maps(problem, schedule)
        if brought is not None:
            maps = (*maps, brought.map(schedule.block_m, schedule.staged_columns))
        return KernelPlan(
            members={
                "Multiply": multiply_type(problem.precision, *self._multiplied(problem)),
                **view.members(),
                **self._members(problem),
                "consumer_registers": handed,
                **(epilogue_members(problem, in_shared=brought.operand) if brought else {}),
            },
            grid=grid,
            threads=int(costs.threads(problem, columns)[0]),
            shared_bytes=int(costs.shared_bytes(problem, columns)[0]),
            partials=schedule.partials(grid),
            cluster=schedule.cluster_shape,
            tensor_maps=maps,
            hands_registers=handed > 0,
        )


def _multicast(view: MatrixView[Any]) -> Multicast:
    return Multicast(view.sizes.rows, view.stored_columns)
