"""Attention on the ordinary cores, of tensors that lie in any way (attention_simt.cuh)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wpk.dims import ceil_div
from wpk.expression import flops
from wpk.performance import Columns, Work
from wpk.problems import Attention
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.streaming import Stream
from wpk.schedules.template import Schedule
from wpk.schedules.views.attention import (
    attention_blocks,
    attention_members,
    attention_sizes,
    why_not_attention,
)
from wpk.targets import Target

_WARP, _MAX_WARPS = 32, 32
_MAX_SIZE = 512  # elements of a head
_STATIC_SHARED = 48 * 1024
_OTHER_REGISTERS = 40
_SCORE_FLOPS = 12  # maximum, subtraction, exponential, sum


@dataclass(frozen=True)
class AttentionSimtSchedule(Schedule):
    """Parameters of attention_simt.cuh.

    Attributes:
        warps: Warps of a block, one for each row of queries.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    warps: int
    early: int = 0


class AttentionSimtTemplate(SingleKernelTemplate[Attention, AttentionSimtSchedule]):
    """A warp to a row of queries: what tensor cores cannot read."""

    name: ClassVar[str] = "attention_simt"
    version: ClassVar[int] = 4
    problem_type = Attention
    schedule_type = AttentionSimtSchedule

    def why_not(self, problem: Attention, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        del target
        for name, tensor in (("q", problem.q), ("k", problem.k), ("v", problem.v)):
            if not tensor.dtype.is_float:
                return f"{name} is {tensor.dtype.value}; attention takes floating point"
        if max(problem.depth, problem.width) > _MAX_SIZE:
            return f"heads of {problem.depth} and {problem.width}, at most {_MAX_SIZE} are carried"
        return why_not_attention(problem)

    def _axes(self, problem: Attention, target: Target) -> dict[str, tuple[int, ...]]:
        """Warps of a block."""
        return {"warps": (1, 2, 4, 8, 16)}

    def _limits(self, problem: Attention) -> Sequence[Limit]:
        """A block's warps and their rows of queries in shared memory."""
        return (
            Limit(f"1 <= warps <= {_MAX_WARPS}", f"a block has 1 to {_MAX_WARPS} warps"),
            Limit(
                f"warps * {problem.depth * 4} <= {_STATIC_SHARED}",
                f"rows of queries take at most {_STATIC_SHARED} bytes, which a kernel may declare",
            ),
        )

    def work(self, problem: Attention, columns: Columns, target: Target) -> Work:
        """Count the work: keys and values once a row of queries, a key's row at a time."""
        rows, element = float(problem.rows), problem.k.dtype.bytes
        scores = _SCORE_FLOPS + flops(problem.scores.expression)
        operands = sum(t.dtype.bytes for t in problem.scores.operands)
        ending = flops(problem.ending.expression)
        read = sum(t.dtype.bytes for t in problem.ending.operands)
        size = problem.depth + problem.width
        warps = columns["warps"].astype(np.float64)
        return Stream(
            element_bytes=element,
            flops=2.0 * problem.macs + rows * (problem.keys * scores + problem.width * ending),
            loads=rows * float(problem.keys * (size * element + operands) + problem.width * read),
            stores=rows * (problem.width + problem.y.padding) * float(problem.y.dtype.bytes),
            blocks=np.ceil(rows / warps),
            threads=warps * _WARP,
            registers=_OTHER_REGISTERS + problem.width / _WARP,
            steps=float(-(-problem.keys // _WARP) * size),
            shared_bytes=warps * problem.depth * 4,
            thread_loads=-(-problem.keys // _WARP) * float(problem.depth),
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: Attention, schedule: AttentionSimtSchedule) -> KernelPlan:
        """Items are rows of queries."""
        return KernelPlan(
            members=dict(attention_members(problem, 1)),
            grid=(ceil_div(attention_blocks(problem, 1), schedule.warps), 1, 1),
            sizes=attention_sizes(problem),
            threads=schedule.warps * _WARP,
        )
