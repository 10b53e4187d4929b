"""Templates of one kernel: what its unit says and how it is launched."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, final

from wpk.dims import DimExpr, ceil_div, product
from wpk.extent import Extent
from wpk.kernel_source import KernelSource
from wpk.launch import (
    COOPERATIVE,
    Argument,
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.problems import lifted
from wpk.schedules.early import EARLY, EARLY_LIMIT, early_axis, early_limits, launch_attributes
from wpk.schedules.limit import Limit
from wpk.schedules.template import P, S, ScheduleTemplate, parameter_names
from wpk.schedules.unit import Member, Members, fp32_as_int32, kernel_source
from wpk.targets import Target

Grid = tuple[DimExpr, DimExpr, DimExpr]


@dataclass(frozen=True)
class Partials:
    """Memory for partial sums (``wpk::Partials`` of split_k.cuh).

    Attributes:
        bytes: Of the sums of all blocks.
        tiles: Tiles of the output, each with a counter.
    """

    bytes: DimExpr
    tiles: DimExpr

    @classmethod
    def of(cls, grid: Grid, tile_bytes: int, split: int) -> "Partials | None":
        """Return what a grid needs whose z axis counts ``split`` parts of each tile; None for whole ones."""
        if split == 1:
            return None
        x, y, z = grid
        blocks = product(x, product(y, z))
        return cls(product(blocks, tile_bytes), product(x, product(y, ceil_div(z, split))))


@dataclass(frozen=True)
class KernelPlan:
    """A kernel of one problem and schedule.

    Attributes:
        members: The unit's ``Problem``.
        grid: Blocks.
        threads: Threads of a block.
        shared_bytes: Dynamic shared memory of a block.
        partials: Where its blocks meet, if reductions are split among them.
        tensor_maps: Descriptors that it takes (``wpk::TensorMaps``).
        cluster: Blocks of a cluster.
        leading: The extent that is passed at run time, where that is not the problem's.
        sizes: Further sizes that are passed at run time, behind the extent.
        cooperative: Whether blocks wait for each other, so that all of them must run at once.
        hands_registers: Whether some of a block's warps hand registers to others (``releaseRegisters``).
    """

    members: Members
    grid: Grid
    threads: int
    shared_bytes: int = 0
    partials: Partials | None = None
    tensor_maps: tuple[TensorMapArgument, ...] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)
    leading: Extent | None = None
    sizes: tuple[DimExpr, ...] = ()
    cooperative: bool = False
    hands_registers: bool = False


class SingleKernelTemplate(ScheduleTemplate[P, S], abc.ABC, Generic[P, S]):
    """A template whose header has one function, named like the template in camel case.

    Where its schedules have the parameter ``early``, it says itself what that may be and what follows.

    Attributes:
        header: Its header below ``wpk/schedules``, without ``.cuh``, where that is not the template's name.
    """

    header: ClassVar[str] = ""

    @abc.abstractmethod
    def kernel(self, problem: P, schedule: S) -> KernelPlan:
        """Return the kernel's members and extents.

        Numbers of a quantised problem are operands of stride 0 here (`wpk.problems.lifted`); everywhere else it
        has them itself.
        """

    @abc.abstractmethod
    def _axes(self, problem: P, target: Target) -> dict[str, tuple[int, ...]]:
        """`ScheduleTemplate.axes` of all parameters but ``early``."""

    def _limits(self, problem: P) -> Sequence[Limit]:
        """`ScheduleTemplate.limits` of the other parameters: by default any values will do."""
        return ()

    def _target_limits(self, problem: P, target: Target) -> Sequence[Limit]:
        """`ScheduleTemplate.target_limits` of the other parameters."""
        return ()

    @property
    def _has_early(self) -> bool:
        return EARLY in parameter_names(self.schedule_type)  # type: ignore[arg-type]

    def axes(self, problem: P, target: Target) -> dict[str, tuple[int, ...]]:
        """See `ScheduleTemplate.axes`."""
        early = {EARLY: early_axis(target)} if self._has_early else {}
        return {**self._axes(problem, target), **early}

    @final
    def limits(self, problem: P) -> Sequence[Limit]:
        """See `ScheduleTemplate.limits`."""
        early = (EARLY_LIMIT,) if self._has_early else ()
        return (*self._limits(problem), *early)

    @final
    def target_limits(self, problem: P, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`."""
        early = early_limits(target) if self._has_early else ()
        return (*self._target_limits(problem, target), *early)

    @final
    def instantiate(self, problem: P, schedule: S) -> tuple[KernelSource, ...]:
        """Return one unit: the problem and the schedule as structs of constants, and one call."""
        return (self._source(problem, schedule),)

    @final
    def launches(self, problem: P, schedule: S) -> tuple[Launch, ...]:
        """Return one launch of inputs, run-time sizes and numbers, tensor maps, outputs, and memory for partial sums."""
        without = lifted(problem)
        kernel = self.kernel(without.problem, schedule)
        source = self._source(problem, schedule)
        inputs, leading = len(problem.accesses()[0]), kernel.leading or problem.leading
        scratch: tuple[Argument, ...] = ()
        if kernel.partials is not None:
            scratch = (
                WorkspaceArgument(kernel.partials.bytes),
                CounterArgument(kernel.partials.tiles),
            )
        return (
            Launch(
                kernel=source.digest,
                entry=source.entry,
                grid=kernel.grid,
                block=(kernel.threads, 1, 1),
                shared_bytes=kernel.shared_bytes,
                arguments=(
                    *(InputArgument(index) for index in range(inputs)),
                    SizeArgument(leading.expression),
                    *(SizeArgument(size) for size in kernel.sizes),
                    *(SizeArgument(fp32_as_int32(number)) for number in without.numbers),
                    *kernel.tensor_maps,
                    *(OutputArgument(index) for index in range(len(problem.writes()))),
                    *scratch,
                ),
                cluster=kernel.cluster,
                attributes=(
                    *launch_attributes(dict(schedule.parameters()).get(EARLY, 0)),
                    *((COOPERATIVE,) if kernel.cooperative else ()),
                ),
            ),
        )

    def _source(self, problem: P, schedule: S) -> KernelSource:
        without = lifted(problem)
        kernel = self.kernel(without.problem, schedule)
        members: dict[str, Member] = dict(schedule.parameters())
        if kernel.shared_bytes:  # the header compares them with what it uses
            members["shared_bytes"] = kernel.shared_bytes
        return kernel_source(
            self.name,
            self.header or self.name,
            kernel.members,
            members,
            self.limits(problem),
            without.inputs,
            kernel.threads,
            sizes=len(kernel.sizes),
            tensor_maps=len(kernel.tensor_maps),
            outputs=len(problem.writes()),
            partials=kernel.partials is not None,
            hands_registers=kernel.hands_registers,
        )


def linear_grid(leading: Extent, items: int, block_items: int) -> Grid:
    """Return the blocks of ``block_items`` over ``items`` at each index of the run-time extent."""
    return ceil_div(product(leading.expression, items), block_items), 1, 1
