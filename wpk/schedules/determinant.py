"""Determinants of square matrices, by elimination in shared memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np

from wpk.performance import Columns, Work
from wpk.problems import Determinant, Tensor
from wpk.schedules.block_limits import STATIC_SHARED_BYTES, declared_limit, thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide
from wpk.schedules.strided import cpp_tensor, is_wide, why_unaddressable
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Type, Wide
from wpk.targets import Target

_OUTER_AXES = 4


@dataclass(frozen=True)
class DeterminantSchedule(Schedule):
    """Parameters of determinant.cuh.

    Attributes:
        matrices: Matrices of a block.
        splits: Threads of a matrix.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    matrices: int
    splits: int
    early: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.matrices * self.splits


class DeterminantTemplate(SingleKernelTemplate[Determinant, DeterminantSchedule]):
    """Matrices stay in shared memory from the first pivot to the last."""

    name: ClassVar[str] = "determinant"
    version: ClassVar[int] = 1
    problem_type = Determinant
    schedule_type = DeterminantSchedule

    def why_not(self, problem: Determinant, target: Target) -> str | None:
        """Refuse matrices that shared memory does not hold, other types than floats, and padding."""
        del target
        if len(problem.outer) > _OUTER_AXES:
            return f"{len(problem.outer)} outer axes, at most {_OUTER_AXES} are carried"
        if not (problem.x.dtype.is_float and problem.y.dtype.is_float):
            return f"determinants of {problem.x.dtype} in {problem.y.dtype}"
        if _matrix_bytes(problem) > STATIC_SHARED_BYTES:
            return f"matrices of {problem.size} rows take {_matrix_bytes(problem)} bytes of shared memory"
        if problem.y.padding:
            return f"the output is padded by {problem.y.padding}"
        reason = why_unaddressable([problem.x], (*problem.outer, problem.size, problem.size))
        return reason or why_unaddressable([problem.y], problem.outer)

    def _axes(self, problem: Determinant, target: Target) -> dict[str, tuple[int, ...]]:
        """Matrices a block, threads a matrix."""
        del problem, target
        return {
            "matrices": (8, 1, 2, 4, 16, 32, 64, 128),
            "splits": (8, 1, 2, 4, 16, 32, 64, 128),
        }

    def _limits(self, problem: Determinant) -> Sequence[Limit]:
        """Blocks of whole warps; matrices fit the shared memory."""
        return (
            Limit("matrices * splits % 32 == 0", "a block has whole warps"),
            declared_limit(f"matrices * {_matrix_bytes(problem)}", "matrices"),
        )

    def _target_limits(self, problem: Determinant, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no more threads than work."""
        few = STATIC_SHARED_BYTES // _matrix_bytes(problem) < 32
        return (
            Limit(
                f"splits < {max(2 * problem.size, 33 if few else 2)}",
                f"threads share the {problem.size} columns of a matrix",
            ),
            thread_limit(target, "matrices * splits"),
        )

    def work(self, problem: Determinant, columns: Columns, target: Target) -> Work:
        """Every element once; a step looks for its pivot, and meets at four barriers."""
        matrices, splits = (columns[name].astype(float) for name in ("matrices", "splits"))
        total = problem.leading.value * prod(problem.outer[1:])
        size, element = float(problem.size), problem.x.dtype.bytes
        searched = size * (size + 1.0) / 2.0
        eliminated = size * (size - 1.0) * (2.0 * size - 1.0) / 6.0
        turns = sum(
            np.ceil((size - step) / splits) * (size - step) for step in range(1, problem.size)
        )
        return Stream(
            element_bytes=element,
            flops=total * (2.0 * eliminated + splits * 2.0 * searched),
            loads=total * size**2 * element,
            stores=total * problem.y.dtype.bytes,
            blocks=ceil_divide(total, matrices),
            threads=matrices * splits,
            registers=28.0,
            steps=np.ceil(size**2 / splits) + 4.0 * size,
            shared_bytes=matrices * _matrix_bytes(problem),
            thread_loads=searched + 3.0 * turns,
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: Determinant, schedule: DeterminantSchedule) -> KernelPlan:
        """Items are matrices."""
        rank, count = len(problem.outer), prod(problem.outer[1:])
        order = (0, *(None for _ in range(_OUTER_AXES - rank)), *range(1, rank))
        first, second, third = ((1,) * _OUTER_AXES + problem.outer[1:])[-(_OUTER_AXES - 1) :]
        *outside, rows, columns = problem.x.strides
        matrices = Tensor(problem.x.dtype, tuple(outside), 0, problem.x.dtype.bytes)
        return KernelPlan(
            members={
                "X": Type(cpp_tensor(matrices, order)),
                "Y": Type(cpp_tensor(replace(problem.y, padding=0), order)),
                "o1": first,
                "o2": second,
                "o3": third,
                "size": problem.size,
                "rowStride": Wide(rows),
                "columnStride": Wide(columns),
                "rowsFastest": columns <= rows,
                "wide": is_wide(problem.leading, count),
            },
            grid=linear_grid(problem.leading, count, schedule.matrices),
            threads=schedule.threads,
        )


def _matrix_bytes(problem: Determinant) -> int:
    """Shared memory of a matrix, as determinant.cuh lays it out."""
    return problem.numbers.bytes * (problem.size * (problem.size | 1) | 1)
