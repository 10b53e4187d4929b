"""Updates written where an index tensor says, the last of each place found in shared memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from wpk.performance import Columns, Work
from wpk.problems import IndexedWrite, WriteKind
from wpk.schedules.block_limits import declared_limit, thread_limit
from wpk.schedules.indexed_write import index_members, shares_index, why_not_written
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide, narrow_access
from wpk.schedules.strided import is_wide, vector_widths
from wpk.schedules.template import Schedule
from wpk.targets import Target

_WORD = 4
"""Bytes of an update's number."""

_ROW = 3


@dataclass(frozen=True)
class LatestWriteSchedule(Schedule):
    """Parameters of latest_write.cuh.

    Attributes:
        places: Places of a row that a block owns.
        vector: Neighbouring elements of a place that a thread moves at once.
        threads: Threads of a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    places: int
    vector: int
    threads: int
    early: int = 0


class LatestWriteTemplate(SingleKernelTemplate[IndexedWrite, LatestWriteSchedule]):
    """A block looks through the updates of its row once, however many places it owns."""

    name: ClassVar[str] = "latest_write"
    version: ClassVar[int] = 1
    problem_type = IndexedWrite
    schedule_type = LatestWriteSchedule

    def why_not(self, problem: IndexedWrite, target: Target) -> str | None:
        """Refuse what combines updates, and an index for each element of a place."""
        del target
        if problem.kind is not WriteKind.NONE:
            return f"updates are combined by {problem.kind}; the latest alone is kept"
        if not shares_index(problem):
            return "elements of a place have indices of their own"
        return why_not_written(problem)

    def _axes(self, problem: IndexedWrite, target: Target) -> dict[str, tuple[int, ...]]:
        """Places a block, elements a thread, threads a block."""
        del target
        moved = [problem.data, problem.updates, problem.y]
        return {
            "places": (1024, 4096, 256, 8192, 2048, 64, 512, 128, 32),
            "vector": vector_widths(moved, _ROW, problem.inner + problem.y.padding),
            "threads": (256, 128, 512, 1024, 64),
        }

    def _limits(self, problem: IndexedWrite) -> Sequence[Limit]:
        """Numbers of updates fit the shared memory."""
        del problem
        return (declared_limit(f"places * {_WORD}", "numbers"),)

    def _target_limits(self, problem: IndexedWrite, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no more places than there are."""
        return (
            Limit(f"places < {max(2 * problem.size, 33)}", f"a row has {problem.size} places"),
            thread_limit(target),
        )

    def work(self, problem: IndexedWrite, columns: Columns, target: Target) -> Work:
        """Every element once; each part of a row passes the row's indices."""
        places, vector, threads = (
            columns[name].astype(float) for name in ("places", "vector", "threads")
        )
        size, numbers = problem.y.dtype.bytes, len(problem.sizes)
        rows = float(problem.leading.value * prod(problem.outer[1:]))
        blocks = rows * ceil_divide(problem.size, places)
        elements = rows * problem.size * problem.inner
        indices = float(problem.count * numbers * problem.index.dtype.bytes)
        turns = ceil_divide(problem.count, threads)
        moves = ceil_divide(places * problem.inner / vector, threads)
        return Stream(
            element_bytes=size,
            flops=blocks * problem.count * (2.0 + 4.0 * numbers) + elements,
            loads=elements * size * narrow_access(vector, size) + blocks * indices,
            stores=elements * size,
            blocks=blocks,
            threads=threads,
            registers=32.0 + 3 * vector,
            steps=2.0 + (turns + moves) / 4.0,
            shared_bytes=places * _WORD,
            thread_loads=places / threads + moves,
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: IndexedWrite, schedule: LatestWriteSchedule) -> KernelPlan:
        """Blocks are parts of rows."""
        parts = problem.outer[1] * -(-problem.size // schedule.places)
        return KernelPlan(
            members={**index_members(problem), "wide": is_wide(problem.leading, parts)},
            grid=linear_grid(problem.leading, parts, 1),
            threads=schedule.threads,
        )
