"""Running sums and products along rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from wpk.performance import Columns, Work
from wpk.problems import PrefixScan
from wpk.schedules.block_limits import declared_limit, thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide, narrow_access, short_run
from wpk.schedules.strided import cpp_tensor, is_wide, why_unaddressable
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Enumerator, Type
from wpk.targets import Target

_OUTER_AXES = 4


@dataclass(frozen=True)
class PrefixScanSchedule(Schedule):
    """Parameters of prefix_scan.cuh.

    Attributes:
        rows: Rows of a block.
        splits: Threads of a row.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    rows: int
    splits: int
    early: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows * self.splits


class PrefixScanTemplate(SingleKernelTemplate[PrefixScan, PrefixScanSchedule]):
    """Threads of a row combine as many elements at a time, and carry the result on."""

    name: ClassVar[str] = "prefix_scan"
    version: ClassVar[int] = 1
    problem_type = PrefixScan
    schedule_type = PrefixScanSchedule

    def why_not(self, problem: PrefixScan, target: Target) -> str | None:
        """Refuse too many axes, several types, offsets of 64 bits, and padding."""
        del target
        if len(problem.outer) > _OUTER_AXES:
            return f"{len(problem.outer)} outer axes, at most {_OUTER_AXES} are carried"
        if problem.x.dtype is not problem.y.dtype or problem.x.dtype.value == "bool":
            return f"sums of {problem.x.dtype} in {problem.y.dtype}"
        if problem.y.padding:
            return f"the output is padded by {problem.y.padding}"
        return why_unaddressable([problem.x, problem.y], (*problem.outer, problem.size))

    def _axes(self, problem: PrefixScan, target: Target) -> dict[str, tuple[int, ...]]:
        """Rows a block, threads a row."""
        return {
            "rows": (8, 32, 1, 2, 4, 16, 64, 128, 256),
            "splits": (32, 8, 1, 2, 4, 16, 64, 128, 256, 512),
        }

    def _limits(self, problem: PrefixScan) -> Sequence[Limit]:
        """Blocks of whole warps; values fit the shared memory."""
        return (
            Limit("(rows & (rows - 1)) == 0", "rows of a block are a power of two"),
            Limit("(splits & (splits - 1)) == 0", "threads of a row are a power of two"),
            Limit("rows * splits % 32 == 0", "a block has whole warps"),
            declared_limit(f"rows * splits * {_value_bytes(problem)}", "values"),
        )

    def _target_limits(self, problem: PrefixScan, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no more threads than work."""
        return (
            Limit(
                f"splits < {2 * problem.size}",
                f"threads share the {problem.size} elements of a row",
            ),
            thread_limit(target, "rows * splits"),
        )

    def work(self, problem: PrefixScan, columns: Columns, target: Target) -> Work:
        """Every element once; a chunk takes two barriers and an addition for each doubling."""
        rows, splits = (columns[name].astype(float) for name in ("rows", "splits"))
        threads, size = rows * splits, problem.x.dtype.bytes
        total = problem.leading.value * prod(problem.outer[1:])
        run = splits if _along_row(problem) else rows
        doublings = np.log2(splits)
        chunks = np.ceil(problem.size / splits)
        return Stream(
            element_bytes=size,
            flops=total * problem.size * (1.0 + doublings),
            loads=total * problem.size * size * short_run(run, size) * narrow_access(run, size),
            stores=float(total * problem.size * problem.y.dtype.bytes),
            blocks=ceil_divide(total, rows),
            threads=threads,
            registers=20.0,
            steps=chunks * (1.0 + doublings),
            shared_bytes=np.where(splits > 1, threads * _value_bytes(problem), 0.0),
            thread_loads=np.where(splits > 1, 1.0, 0.0),
            early=columns["early"] == 1,
            numbers=problem.numbers,
        ).work(target)

    def kernel(self, problem: PrefixScan, schedule: PrefixScanSchedule) -> KernelPlan:
        """Items are rows."""
        rank, rows = len(problem.outer), prod(problem.outer[1:])
        order = (0, *(None for _ in range(_OUTER_AXES - rank)), *range(1, rank + 1))
        first, second, third = ((1,) * _OUTER_AXES + problem.outer[1:])[-(_OUTER_AXES - 1) :]
        return KernelPlan(
            members={
                "X": Type(cpp_tensor(problem.x, order)),
                "Y": Type(cpp_tensor(problem.y, order)),
                "o1": first,
                "o2": second,
                "o3": third,
                "size": problem.size,
                "kind": Enumerator(f"wpk::ScanKind::{problem.kind.value}"),
                "exclusive": problem.exclusive,
                "reverse": problem.reverse,
                "alongRow": _along_row(problem),
                "wide": is_wide(problem.leading, rows),
            },
            grid=linear_grid(problem.leading, rows, schedule.rows),
            threads=schedule.threads,
        )


def _along_row(problem: PrefixScan) -> bool:
    """Whether neighbouring threads take neighbours in a row: where it is contiguous, or nothing else is."""
    return problem.y.strides[-1] == 1 or 1 not in problem.y.strides[:-1]


def _value_bytes(problem: PrefixScan) -> int:
    """Bytes of what is summed."""
    return problem.numbers.bytes if problem.x.dtype.is_float else problem.x.dtype.bytes
