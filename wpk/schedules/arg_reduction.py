"""The place of the largest or smallest element of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wpk.performance import Columns, Work
from wpk.problems import TopIndices
from wpk.schedules.block_limits import declared_limit, thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide, narrow_access, short_run
from wpk.schedules.strided import is_wide
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Members
from wpk.schedules.views.top_indices import key_bytes, members, rows, why_not
from wpk.targets import Target


@dataclass(frozen=True)
class ArgReductionSchedule(Schedule):
    """Parameters of arg_reduction.cuh.

    Attributes:
        outputs: Rows of a block.
        splits: Threads that share a row.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    outputs: int
    splits: int
    early: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.outputs * self.splits


class ArgReductionTemplate(SingleKernelTemplate[TopIndices, ArgReductionSchedule]):
    """Threads share a row, and meet in shared memory; for the first element alone."""

    name: ClassVar[str] = "arg_reduction"
    version: ClassVar[int] = 1
    problem_type = TopIndices
    schedule_type = ArgReductionSchedule

    def why_not(self, problem: TopIndices, target: Target) -> str | None:
        """Refuse more than the first element of a row."""
        del target
        if problem.count != 1:
            return f"finds the first element of a row, the problem asks for {problem.count}"
        return why_not(problem)

    def _axes(self, problem: TopIndices, target: Target) -> dict[str, tuple[int, ...]]:
        """Rows a block, threads a row."""
        return {
            "outputs": (8, 32, 1, 2, 4, 16, 64, 128, 256),
            "splits": (32, 8, 1, 2, 4, 16, 64, 128, 256, 512),
        }

    def _limits(self, problem: TopIndices) -> Sequence[Limit]:
        """Blocks of whole warps; shares fit the shared memory."""
        element = 2 * key_bytes(problem)
        return (
            Limit("(outputs & (outputs - 1)) == 0", "rows of a block are a power of two"),
            Limit("(splits & (splits - 1)) == 0", "threads of a row are a power of two"),
            Limit("outputs * splits % 32 == 0", "a block has whole warps"),
            declared_limit(f"outputs * splits * {element}", "shares"),
        )

    def _target_limits(self, problem: TopIndices, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no more threads than work."""
        return (
            Limit(
                f"splits < {2 * problem.size}",
                f"threads share the {problem.size} elements of a row",
            ),
            thread_limit(target, "outputs * splits"),
        )

    def work(self, problem: TopIndices, columns: Columns, target: Target) -> Work:
        """Every element once, a comparison each."""
        outputs, splits = (columns[name].astype(float) for name in ("outputs", "splits"))
        threads, size = outputs * splits, problem.x.dtype.bytes
        total = problem.leading.value * rows(problem)
        run = splits if _along_row(problem) else outputs
        element = 2.0 * key_bytes(problem)
        return Stream(
            element_bytes=size,
            flops=4.0 * total * problem.size,
            loads=total * problem.size * size * short_run(run, size) * narrow_access(run, size),
            stores=float(total * problem.y.dtype.bytes),
            blocks=ceil_divide(total, outputs),
            threads=threads,
            registers=24.0,
            steps=np.ceil(problem.size / splits),
            shared_bytes=threads * element * (splits > 1),
            thread_loads=np.where(splits > 1, 1.0, 0.0),
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: TopIndices, schedule: ArgReductionSchedule) -> KernelPlan:
        """Items are rows."""
        shared: Members = members(problem, with_count=False)
        return KernelPlan(
            members={
                **shared,
                "alongRow": _along_row(problem),
                "wide": is_wide(problem.leading, rows(problem)),
            },
            grid=linear_grid(problem.leading, rows(problem), schedule.outputs),
            threads=schedule.threads,
        )


def _along_row(problem: TopIndices) -> bool:
    """Whether neighbouring threads take neighbours in a row: where it is contiguous, or nothing else is."""
    return problem.x.strides[-1] == 1 or 1 not in problem.x.strides[:-1]
