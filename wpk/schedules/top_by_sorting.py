"""The places of the first elements of rows, by sorting in shared memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wpk.performance import Columns, Work
from wpk.problems import TopIndices
from wpk.schedules.block_limits import STATIC_SHARED_BYTES, declared_limit
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream
from wpk.schedules.strided import is_wide
from wpk.schedules.template import Schedule
from wpk.schedules.views.top_indices import key_bytes, members, rows, why_not
from wpk.targets import Target

_REGISTERS, _MOST_THREADS = 40.0, 512
"""Of a thread, as ptxas reports, and of a block. For blocks of 1024 threads ptxas takes 32 registers, so that an SM may hold two,
and spills the others."""

_MOST_KEPT = 2048
"""Twice as many elements with keys of 8 bytes, aligned, take more; those of 4 bytes fit."""


@dataclass(frozen=True)
class TopBySortingSchedule(Schedule):
    """Parameters of top_by_sorting.cuh.

    Attributes:
        kept: Elements that are sorted beside those that are new: a power of two.
        threads: Threads of a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    kept: int
    threads: int
    early: int = 0


class TopBySortingTemplate(SingleKernelTemplate[TopIndices, TopBySortingSchedule]):
    """A block a row, of any length."""

    name: ClassVar[str] = "top_by_sorting"
    version: ClassVar[int] = 1
    problem_type = TopIndices
    schedule_type = TopBySortingSchedule

    def why_not(self, problem: TopIndices, target: Target) -> str | None:
        """Refuse more elements than shared memory holds sorted."""
        del target
        most = _most_kept(problem)
        if problem.count > most:
            return f"{problem.count} elements are asked for, at most {most} are sorted"
        return why_not(problem)

    def _axes(self, problem: TopIndices, target: Target) -> dict[str, tuple[int, ...]]:
        """Elements kept, threads a block."""
        del target
        kept = tuple(2**power for power in range(5, 12) if 2**power >= problem.count)
        return {"kept": kept, "threads": (256, 512, 128, 64, 32)}

    def _limits(self, problem: TopIndices) -> Sequence[Limit]:
        """Sorted runs have powers of two, and fit the shared memory."""
        element = 2 * key_bytes(problem)
        return (
            Limit("(kept & (kept - 1)) == 0", "what is kept is a power of two"),
            Limit(f"kept >= {problem.count}", f"{problem.count} elements are asked for"),
            declared_limit(f"2 * kept * {element}", "both halves"),
        )

    def _target_limits(self, problem: TopIndices, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; every thread has a pair to compare."""
        return (
            Limit("threads <= kept", "every thread has a pair to compare"),
            Limit(
                f"threads <= {_MOST_THREADS}",
                f"more than {_MOST_THREADS} threads have too few registers: they would spill",
            ),
        )

    def work(self, problem: TopIndices, columns: Columns, target: Target) -> Work:
        """Every element once; each stage of a sort compares all pairs, and ends at a barrier."""
        kept, threads = (columns[name].astype(float) for name in ("kept", "threads"))
        total = float(problem.leading.value * rows(problem))
        rounds = np.maximum(0.0, np.ceil((problem.size - 2 * kept) / kept))
        depth = np.log2(kept)
        whole, half = (depth + 1) * (depth + 2) / 2, depth * (depth + 1) / 2
        pairs = whole * kept + rounds * (half * kept / 2 + (depth + 1) * kept)
        stages = whole + rounds * (half + depth + 1)
        return Stream(
            element_bytes=problem.x.dtype.bytes,
            flops=6.0 * total * pairs,
            loads=total * problem.size * problem.x.dtype.bytes,
            stores=total * problem.count * problem.y.dtype.bytes,
            blocks=np.full(kept.shape, total),
            threads=threads,
            registers=_REGISTERS,
            steps=stages,
            shared_bytes=4.0 * kept * key_bytes(problem),
            thread_loads=2.0 * pairs / threads / stages,
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: TopIndices, schedule: TopBySortingSchedule) -> KernelPlan:
        """Blocks are rows."""
        return KernelPlan(
            members={
                **members(problem, with_count=True),
                "count": problem.count,
                "wide": is_wide(problem.leading, rows(problem)),
            },
            grid=linear_grid(problem.leading, rows(problem), 1),
            threads=schedule.threads,
        )


def _most_kept(problem: TopIndices) -> int:
    fit = STATIC_SHARED_BYTES // (4 * key_bytes(problem))
    return min(_MOST_KEPT, 1 << (fit.bit_length() - 1))
