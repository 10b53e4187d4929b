"""A feed-forward block by warpgroups, without its hidden rows in memory (feed_forward.cuh), on sm_90a."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpk.dims import DimExpr, ceil_div
from wpk.dtypes import DType
from wpk.launch import TensorMapArgument
from wpk.performance import Columns, Work
from wpk.problems import FeedForward, Tensor
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_epilogue import epilogue_members
from wpk.schedules.multiplication import MULTIPLY_TYPES
from wpk.schedules.row_norm import norm_members
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.strided import why_operand_missing, why_unpaddable
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Member, Type
from wpk.schedules.views.matmul import why_too_large
from wpk.schedules.wgmma import feed_forward_costs as costs
from wpk.schedules.wgmma.boxed_rows import SLICE, tight_swizzle
from wpk.schedules.wgmma.group import GROUP_ROWS
from wpk.schedules.wgmma.handed_registers import MOST_GROUPS
from wpk.schedules.wgmma.persistent import persistent_axis, persistent_grid, persistent_limits
from wpk.schedules.wgmma.tensor_copies import (
    map_strides,
    why_no_warpgroups,
    why_not_copied,
    why_not_stored,
)
from wpk.targets import Target

_COLUMNS = (32, 48, 64, 96, 128)  # of a step
_STAGES = (2, 3, 4, 6)
_MOST_WIDTH = 256  # columns of a product
_MOST_STAGES = 64  # each has barriers that the kernel sets up one after another


@dataclass(frozen=True)
class FeedForwardWgmmaSchedule(Schedule):
    """Parameters of feed_forward.cuh.

    Attributes:
        warpgroups: Consumer warpgroups of a block; each has 64 rows of a tile.
        block_n: Hidden columns of a step.
        stages: Stages of the pipelines of both weights; as many as there are steps keep the weights.
        row_stages: Tiles of rows that are in shared memory at once.
        persistent: Persistent blocks, which compute tiles one after another; 0 where each tile has a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
        pingpong: 1 where the warpgroups ask for products in turns, else 0.
    """

    warpgroups: int
    block_n: int
    stages: int
    row_stages: int = 1
    persistent: int = 0
    early: int = 0
    pingpong: int = 0

    @property
    def rows(self) -> int:
        """Of a tile."""
        return self.warpgroups * GROUP_ROWS


class FeedForwardWgmmaTemplate(SingleKernelTemplate[FeedForward, FeedForwardWgmmaSchedule]):
    """Rows that tensor copies can bring, of as many columns as a product of warpgroups has."""

    name: ClassVar[str] = "feed_forward_wgmma"
    header: ClassVar[str] = "wgmma/feed_forward"
    version: ClassVar[int] = 3
    on_tensor_cores: ClassVar[bool] = True
    problem_type = FeedForward
    schedule_type = FeedForwardWgmmaSchedule

    def why_not(self, problem: FeedForward, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if (reason := why_no_warpgroups(problem.precision, target)) is not None:
            return reason
        stored = problem.precision.storage
        if stored not in (DType.FP16, DType.BF16):
            return f"hidden rows of {stored.value} do not become a factor where they are"
        if max(problem.k, problem.n) > _MOST_WIDTH:
            return f"rows of {problem.k} and {problem.n}, at most {_MOST_WIDTH} are carried"
        x = problem.x
        if x.strides[0] == 0:
            return "x is broadcast along its rows"
        reason = why_not_copied("x", x.dtype, stored, x.alignment, x.strides[::-1])
        if reason is not None:
            return reason
        if any(each.strides[0] for each in problem.hidden.operands):
            return "an operand of the hidden rows differs from row to row"
        return (
            why_not_stored(problem.second)
            or why_operand_missing(problem)
            or why_unpaddable(problem.y, (1,))
            or why_too_large(problem.first)
        )

    def _axes(self, problem: FeedForward, target: Target) -> dict[str, tuple[int, ...]]:
        steps = {-(-problem.hidden_size // columns) for columns in _COLUMNS}
        kept = {each for each in steps if each <= _MOST_STAGES}
        return {
            "warpgroups": tuple(range(1, MOST_GROUPS + 1)),
            "block_n": _COLUMNS,
            "stages": tuple(sorted(kept | set(_STAGES))),
            "row_stages": (1, 2),
            "persistent": persistent_axis(problem.m.value, GROUP_ROWS, target),
            "pingpong": (0, 1),
        }

    def _limits(self, problem: FeedForward) -> Sequence[Limit]:
        """What feed_forward.cuh can compute."""
        steps = f"ceil_div({problem.hidden_size}, block_n)"
        return (
            Limit(f"1 <= warpgroups <= {MOST_GROUPS}", f"a block has 1 to {MOST_GROUPS} consumers"),
            Limit(
                f"0 < block_n <= {_MOST_WIDTH} and block_n % {SLICE} == 0",
                f"a step has whole slices of {SLICE} hidden columns, at most {_MOST_WIDTH}",
            ),
            Limit(
                f"1 <= stages <= min({_MOST_STAGES}, {steps})",
                f"the pipelines have no more stages than there are steps, {_MOST_STAGES} at most",
            ),
            Limit("row_stages in (1, 2)", "one or two tiles of rows are there at once"),
            Limit("persistent >= 0", "persistent is a number of blocks, or 0"),
            Limit(
                "row_stages == 1 or persistent != 0",
                "a block with one tile has the rows of one",
            ),
            Limit("pingpong in (0, 1)", "pingpong is 0 or 1"),
            Limit("pingpong == 0 or warpgroups > 1", "one warpgroup takes no turns"),
        )

    def _target_limits(self, problem: FeedForward, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no warpgroup is without a row."""
        return (
            Limit(
                f"warpgroups == 1 or {GROUP_ROWS} * (warpgroups - 1) < {problem.m.value}",
                f"each warpgroup has some of the {problem.m.value} rows",
            ),
            Limit(
                f"stages in {_STAGES} or stages == ceil_div({problem.hidden_size}, block_n)",
                "weights of all steps stay, or those of a few steps come in turns",
            ),
            Limit(
                f"block_n == {_COLUMNS[0]} or block_n - {_COLUMNS[0]} < {problem.hidden_size}",
                f"no two slices of a step are behind the last of {problem.hidden_size} columns",
            ),
            *persistent_limits(target),
            *costs.limits(problem, target),
        )

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """Tell apart one warpgroup and several, with turns and without, each with persistent blocks and without."""
        several, persistent = columns["warpgroups"] > 1, columns["persistent"] > 0
        return np.asarray(several + columns["pingpong"] + 3 * persistent, np.int64)

    def work(self, problem: FeedForward, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        return costs.work(problem, columns, target)

    def kernel(self, problem: FeedForward, schedule: FeedForwardWgmmaSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        columns = schedule.columns()
        handed = int(costs.handed(problem, columns)[0])
        tiles = ceil_div(problem.m.expression, schedule.rows)
        return KernelPlan(
            members=_members(problem, handed),
            grid=persistent_grid((tiles, 1, 1), schedule.persistent),
            threads=int(costs.threads(problem, columns)[0]),
            shared_bytes=int(costs.shared_bytes(problem, columns)[0]),
            tensor_maps=(
                _map(0, problem.x, problem.k, problem.m.expression, GROUP_ROWS),
                _map(1, problem.up, problem.k, problem.hidden_size, schedule.block_n),
                _map(2, problem.down, problem.n, problem.hidden_size, schedule.block_n),
            ),
            hands_registers=handed > 0,
        )


def _members(problem: FeedForward, handed: int) -> dict[str, Member]:
    hidden, output = epilogue_members(problem.first), epilogue_members(problem.second)
    stored = ("Y", "Operands", "Epilogue", "y_padding")
    return {
        "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
        "M": Type("wpk::Runtime" if problem.m.free else f"wpk::Const<{problem.m.value}>"),
        "k": problem.k,
        "hidden": problem.hidden_size,
        "n": problem.n,
        "HiddenOperands": hidden["Operands"],
        "HiddenEpilogue": hidden["Epilogue"],
        **norm_members(problem.first),
        **{name: output[name] for name in stored},
        "consumer_registers": handed,
    }


def _map(
    index: int, tensor: Tensor, columns: int, rows: DimExpr, box_rows: int
) -> TensorMapArgument:
    """A map over columns and rows."""
    size, swizzle = tensor.dtype.bytes, tight_swizzle(columns)
    strides = map_strides(tensor.strides[:1], size)
    return TensorMapArgument(index, (columns, rows), strides, (swizzle // size, box_rows), swizzle)
