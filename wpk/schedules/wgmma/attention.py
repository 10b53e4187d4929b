"""Attention by warpgroups, without the scores in memory (attention.cuh), on sm_90a."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpk.dims import DimExpr, product
from wpk.dtypes import DType
from wpk.launch import TensorMapArgument
from wpk.performance import Columns, Work
from wpk.problems import Attention, Tensor
from wpk.schedules.limit import Limit
from wpk.schedules.multiplication import MULTIPLY_TYPES
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Type
from wpk.schedules.views.attention import (
    attention_blocks,
    attention_members,
    attention_sizes,
    why_not_attention,
)
from wpk.schedules.wgmma import attention_costs as costs
from wpk.schedules.wgmma.boxed_rows import widest_swizzle
from wpk.schedules.wgmma.group import GROUP_ROWS
from wpk.schedules.wgmma.tensor_copies import (
    map_strides,
    why_no_warpgroups,
    why_not_copied,
)
from wpk.targets import Target

_KEYS = 16  # of a slice of the product with the values
_MOST_KEYS = 256  # of a tensor copy's box, and of a product
_MOST_GROUPS, _MOST_STAGES = 3, 4
_MOST_SIZE = 256  # elements of a head: columns of a product
_ROW, _HEAD, _MATRIX = 2, 1, 0


@dataclass(frozen=True)
class AttentionWgmmaSchedule(Schedule):
    """Parameters of attention.cuh.

    Attributes:
        warpgroups: Consumer warpgroups of a block; each has 64 queries.
        block_n: Keys of a step.
        stages: Stages of the pipelines of keys and of values.
        pingpong: 1 where the warpgroups ask for products in turns, else 0.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    warpgroups: int
    block_n: int
    stages: int
    pingpong: int = 0
    early: int = 0

    @property
    def rows(self) -> int:
        """Queries of a block."""
        return self.warpgroups * GROUP_ROWS


class AttentionWgmmaTemplate(SingleKernelTemplate[Attention, AttentionWgmmaSchedule]):
    """Queries, keys and values of 16 bits that tensor copies can bring."""

    name: ClassVar[str] = "attention_wgmma"
    header: ClassVar[str] = "wgmma/attention"
    version: ClassVar[int] = 4
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Attention
    schedule_type = AttentionWgmmaSchedule

    def why_not(self, problem: Attention, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if (reason := why_no_warpgroups(problem.precision, target)) is not None:
            return reason
        stored = problem.precision.storage
        if stored not in (DType.FP16, DType.BF16):
            return (
                f"values of {problem.precision.value} lie across their product; warpgroups multiply"
                " 16 bits so"
            )
        if problem.windows is not None:
            return "rows of windows lie apart; tensor copies bring rows that follow each other"
        if max(problem.depth, problem.width) > _MOST_SIZE:
            return f"heads of {problem.depth} and {problem.width}, at most {_MOST_SIZE} are carried"
        for name, tensor in (("q", problem.q), ("k", problem.k), ("v", problem.v)):
            strides = tensor.strides[::-1]
            if tensor.strides[_ROW] == 0:
                return f"{name} is broadcast along its rows"
            reason = why_not_copied(name, tensor.dtype, stored, tensor.alignment, strides)
            if reason is not None:
                return reason
        return why_not_attention(problem)

    def _axes(self, problem: Attention, target: Target) -> dict[str, tuple[int, ...]]:
        return {
            "warpgroups": tuple(range(1, _MOST_GROUPS + 1)),
            "block_n": (32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192),
            "stages": tuple(range(1, _MOST_STAGES + 1)),
            "pingpong": (0, 1),
        }

    def _limits(self, problem: Attention) -> Sequence[Limit]:
        """What attention.cuh can compute."""
        steps = f"ceil_div({problem.keys}, block_n)"
        if problem.lengths is not None:  # how many there are is not known before a run
            steps = str(_MOST_STAGES)
        return (
            Limit(
                f"1 <= warpgroups <= {_MOST_GROUPS}", f"a block has 1 to {_MOST_GROUPS} consumers"
            ),
            Limit(
                f"0 < block_n <= {_MOST_KEYS} and block_n % {_KEYS} == 0",
                f"a step has whole slices of {_KEYS} keys, at most {_MOST_KEYS}",
            ),
            Limit(
                f"min(2, {steps}) <= stages <= min({_MOST_STAGES}, {steps})",
                f"the pipelines have 2 to {_MOST_STAGES} stages, and no more than there are steps",
            ),
            Limit("pingpong in (0, 1)", "pingpong is 0 or 1"),
            Limit("pingpong == 0 or warpgroups > 1", "one warpgroup takes no turns"),
        )

    def _target_limits(self, problem: Attention, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no warpgroup is without a query."""
        rows, queries = GROUP_ROWS, problem.queries
        return (
            Limit(
                f"warpgroups == 1 or {rows} * (warpgroups - 1) < {queries}",
                f"each warpgroup has some of the {queries} queries",
            ),
            Limit(
                f"block_n == 32 or block_n - 32 < {problem.keys}",
                f"no two slices of a step are behind the last of {problem.keys} keys",
            ),
            Limit(
                f"pingpong == 0 or 2 * block_n < {problem.keys}",
                f"turns are taken from the second step of {problem.keys} keys on, where there are three",
            ),
            *costs.limits(problem, target),
        )

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """Tell apart one warpgroup, several, and those in turns: no model was held against a measurement yet."""
        return np.asarray((columns["warpgroups"] > 1) + columns["pingpong"], np.int64)

    def work(self, problem: Attention, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        return costs.work(problem, columns, target)

    def kernel(self, problem: Attention, schedule: AttentionWgmmaSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        tensors = {"q": problem.q, "k": problem.k, "v": problem.v}
        columns = schedule.columns()
        handed = int(costs.handed(problem, columns)[0])
        return KernelPlan(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                **attention_members(problem, schedule.rows),
                "consumer_registers": handed,
                **{
                    f"{name}_outer": tensor.strides[_MATRIX] != 0
                    for name, tensor in tensors.items()
                },
                **{f"{name}_head": tensor.strides[_HEAD] != 0 for name, tensor in tensors.items()},
            },
            grid=(attention_blocks(problem, schedule.rows), 1, 1),
            sizes=attention_sizes(problem),
            threads=int(costs.threads(problem, columns)[0]),
            shared_bytes=int(costs.shared_bytes(problem, columns)[0]),
            tensor_maps=_maps(problem, schedule),
            hands_registers=handed > 0,
        )


def _maps(problem: Attention, schedule: AttentionWgmmaSchedule) -> tuple[TensorMapArgument, ...]:
    queries, keys = problem.lengths or (None, None)
    of_queries = queries.expression if queries else problem.queries
    of_keys = keys.expression if keys else problem.keys
    heads, shared = problem.batch[1], problem.heads_of_keys
    return (
        _map(0, problem, problem.q, problem.depth, heads, of_queries, schedule.rows),
        _map(1, problem, problem.k, problem.depth, shared, of_keys, schedule.block_n),
        _map(2, problem, problem.v, problem.width, shared, of_keys, schedule.block_n),
    )


def _map(
    index: int,
    problem: Attention,
    tensor: Tensor,
    columns: int,
    heads: int,
    rows: DimExpr,
    box_rows: int,
) -> TensorMapArgument:
    """A map over columns, rows, heads and matrices; one where broadcast."""
    outer, head, row, _ = tensor.strides
    size = tensor.dtype.bytes
    matrix: DimExpr = outer * size
    if problem.lengths is not None and outer:  # matrices follow each other row by row
        matrix = product(rows, row * size)
    swizzle = widest_swizzle(columns)
    near = map_strides((row, head), size)
    return TensorMapArgument(
        index,
        (columns, rows, heads if head else 1, problem.leading.expression if outer else 1),
        (*near, matrix if outer else map_strides((0,), size)[0]),
        (swizzle // size, box_rows, 1, 1),
        swizzle,
    )
