"""Products of many rows by a weight that stays in shared memory (thin.cuh), on sm_90a."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpk.dims import ceil_div
from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.launch import TensorMapArgument
from wpk.performance import Columns, Work
from wpk.problems import Matmul
from wpk.schedules import packings
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_epilogue import epilogue_members
from wpk.schedules.multiplication import MULTIPLY_TYPES
from wpk.schedules.row_norm import moments_limits, norm_members
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Type
from wpk.schedules.views.matmul import MatmulView, why_too_large
from wpk.schedules.wgmma import thin_costs as costs
from wpk.schedules.wgmma.boxed_rows import ELEMENT, SLICE, tight_swizzle
from wpk.schedules.wgmma.group import GROUP_ROWS
from wpk.schedules.wgmma.persistent import persistent_axis, persistent_grid, persistent_limits
from wpk.schedules.wgmma.tensor_copies import (
    map_strides,
    why_no_warpgroups,
    why_not_copied,
    why_not_stored,
)
from wpk.targets import Target

_GROUPS = (1, 2, 3, 4, 6)
_MOST_GROUPS = _GROUPS[-1]
_MOST_DEPTH = 256  # elements of a row, all of which lie in shared memory
_MOST_COLUMNS = 256  # of a product of warpgroups
_ROW_STAGES = (1, 2, 3)
_MOST_STEPS_AHEAD = 4
"""Round a loop ptxas would make products of two sets of sums wait for each other: so few steps are written out."""


@dataclass(frozen=True)
class ThinWgmmaSchedule(Schedule):
    """Parameters of thin.cuh.

    Attributes:
        warpgroups: Of a block; each has 64 rows of a tile.
        block_n: Columns of a step.
        row_stages: Tiles of rows that are in shared memory at once.
        persistent: Persistent blocks, which compute tiles one after another; 0 where each tile has a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
        ahead: 1 where a step's products are under way while the sums of the step before are stored, else 0.
    """

    warpgroups: int
    block_n: int
    row_stages: int = 1
    persistent: int = 0
    early: int = 0
    ahead: int = 0

    @property
    def rows(self) -> int:
        """Of a tile."""
        return self.warpgroups * GROUP_ROWS


class ThinWgmmaTemplate(SingleKernelTemplate[Matmul, ThinWgmmaSchedule]):
    """Rows of at most 256 elements of 16 bits, and a constant matrix of which a block holds all."""

    name: ClassVar[str] = "thin_wgmma"
    header: ClassVar[str] = "wgmma/thin"
    version: ClassVar[int] = 1
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Matmul
    schedule_type = ThinWgmmaSchedule

    def why_not(self, problem: Matmul, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if (reason := why_no_warpgroups(problem.precision, target)) is not None:
            return reason
        stored = problem.precision.storage
        if stored not in (DType.FP16, DType.BF16):
            return f"products of {stored.value}: rows that stay as a whole have elements of 16 bits"
        if problem.batch != (Extent(1), 1):
            return "each matrix of a batch has rows of its own, blocks walk along those of one"
        if not problem.b_constant:
            return "b is computed; what stays is brought before the kernels in front have ended"
        if problem.k > _MOST_DEPTH:
            return f"rows of {problem.k}, at most {_MOST_DEPTH} lie in shared memory as a whole"
        if (reason := why_not_stored(problem)) is not None:
            return reason
        a = problem.a
        if a.strides[2] == 0:
            return "a is broadcast along its rows"
        reason = why_not_copied("a", a.dtype, stored, a.alignment, a.strides[:1:-1])
        return reason or _why_no_room(problem, target) or why_too_large(problem)

    def packing(self, problem: Matmul, schedule: ThinWgmmaSchedule) -> str | None:
        """See `MatmulView.packing`."""
        del schedule  # every schedule reads the same rows
        return MatmulView(problem).packing

    def _axes(self, problem: Matmul, target: Target) -> dict[str, tuple[int, ...]]:
        return {
            "warpgroups": _GROUPS,
            "block_n": _widths(problem),
            "row_stages": _ROW_STAGES,
            "persistent": persistent_axis(problem.m.value, GROUP_ROWS, target),
            "ahead": (0, 1),
        }

    def _limits(self, problem: Matmul) -> Sequence[Limit]:
        """What thin.cuh can compute."""
        steps = f"ceil_div({costs.stored_columns(problem)}, block_n)"
        return (
            Limit(
                f"1 <= warpgroups <= {_MOST_GROUPS}", f"a block has 1 to {_MOST_GROUPS} warpgroups"
            ),
            Limit(
                f"{SLICE} <= block_n <= {_MOST_COLUMNS} and block_n % {SLICE} == 0",
                f"a step has {SLICE} to {_MOST_COLUMNS} columns, a multiple of {SLICE}",
            ),
            Limit(f"row_stages in {_ROW_STAGES}", "one to three tiles of rows are there at once"),
            Limit("persistent >= 0", "persistent is a number of blocks, or 0"),
            Limit(
                "row_stages == 1 or persistent != 0",
                "a block with one tile has the rows of one",
            ),
            Limit("ahead in (0, 1)", "ahead is 0 or 1"),
            Limit(
                f"ahead == 0 or 1 < {steps} <= {_MOST_STEPS_AHEAD}",
                f"products run ahead of two to {_MOST_STEPS_AHEAD} steps, whose sums take turns without a loop",
            ),
            *moments_limits(problem),
        )

    def _target_limits(self, problem: Matmul, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no warpgroup is without a row."""
        return (
            *costs.limits(target),
            Limit(
                f"warpgroups == 1 or {GROUP_ROWS} * (warpgroups - 1) < {problem.m.value}",
                f"each warpgroup has some of the {problem.m.value} rows",
            ),
            Limit(
                "row_stages <= turns",
                "no more tiles of rows are there at once than a block computes",
            ),
            *persistent_limits(target),
        )

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """Tell apart one warpgroup and several, products that run ahead and not, each with persistent blocks and without."""
        several, persistent = columns["warpgroups"] > 1, columns["persistent"] > 0
        return np.asarray(several + 2 * columns["ahead"] + 4 * persistent, np.int64)

    def work(self, problem: Matmul, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        return costs.work(problem, columns, target)

    def kernel(self, problem: Matmul, schedule: ThinWgmmaSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        columns = schedule.columns()
        tiles = ceil_div(problem.m.expression, schedule.rows)
        free = problem.m.free is not None
        return KernelPlan(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                "M": Type("wpk::Runtime" if free else f"wpk::Const<{problem.m.value}>"),
                "n": problem.n,
                "k": problem.k,
                **epilogue_members(problem),
                **norm_members(problem),
            },
            grid=persistent_grid((tiles, 1, 1), schedule.persistent),
            threads=int(costs.threads(columns)[0]),
            shared_bytes=int(costs.shared_bytes(problem, columns)[0]),
            tensor_maps=_maps(problem, schedule),
        )


def _widths(problem: Matmul) -> tuple[int, ...]:
    """Columns of a step to try: those of so many equal ones, whole groups where moments are stored."""
    unit, stored = costs.column_unit(problem), costs.stored_columns(problem)
    widths = {-(-stored // (steps * unit)) * unit for steps in range(1, -(-stored // unit) + 1)}
    return tuple(sorted(width for width in widths if width <= _MOST_COLUMNS))


def _why_no_room(problem: Matmul, target: Target) -> str | None:
    """Say why a block has no room for the matrix and the rows of a warpgroup; None if it has."""
    widths = np.asarray(_widths(problem))
    least = {"warpgroups": np.ones_like(widths), "row_stages": np.ones_like(widths)}
    taken = int(costs.shared_bytes(problem, {**least, "block_n": widths}).min())
    room = target.max_shared_block
    if taken <= room:
        return None
    return (
        f"b of {problem.k} x {problem.n} with {GROUP_ROWS} rows takes {taken} bytes of shared memory, "
        f"a block of {target.name} has {room}"
    )


def _maps(
    problem: Matmul, schedule: ThinWgmmaSchedule
) -> tuple[TensorMapArgument, TensorMapArgument]:
    """Of the rows, and of the columns of ``b`` as rows."""
    swizzle = tight_swizzle(problem.k)
    width = swizzle // ELEMENT
    of_row, of_column = (
        map_strides((stride,), ELEMENT)
        for stride in (problem.a.strides[2], packings.matrix_row(problem, ELEMENT))
    )
    rows, columns = (problem.k, problem.m.expression), (problem.k, problem.n)
    return (
        TensorMapArgument(0, rows, of_row, (width, GROUP_ROWS), swizzle),
        TensorMapArgument(1, columns, of_column, (width, schedule.block_n), swizzle),
    )
