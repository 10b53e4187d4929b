"""Product of few rows with a matrix ("skinny GEMM", GEMV), bound by the bytes of that matrix (gemm_skinny.cuh)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Columns, Floats, Work
from wpk.problems import FEW_ROWS, Matmul
from wpk.schedules.limit import Limit
from wpk.schedules.row_norm import why_normed
from wpk.schedules.single_kernel import KernelPlan, Partials, SingleKernelTemplate
from wpk.schedules.split import split_limits, useful_split
from wpk.schedules.template import Schedule
from wpk.schedules.tiles.matrix import target_limits
from wpk.schedules.tiles.skinny import SkinnyTiles
from wpk.schedules.unit import Members
from wpk.schedules.views.matmul import MatmulView, why_too_large
from wpk.targets import Target

_MOST_TOGETHER = 16
"""Elements of an access at most: bytes in 16 of them."""


@dataclass(frozen=True)
class SkinnySchedule(Schedule):
    """How a block divides its tile among threads, and what each of them has in flight.

    Attributes:
        block_m: Rows of a block.
        thread_n: Columns of a thread.
        threads_k: Threads that share the reduction of a column.
        threads_n: Groups of them in a block, each with columns of its own.
        depth: Vectors of ``b`` along the reduction (rows of it, where it lies across) that a thread takes in a step.
        prefetch: 1: the next step's operands are loaded during the computation.
        split: Blocks that share the reduction of a tile.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    block_m: int
    thread_n: int
    threads_k: int
    threads_n: int
    depth: int
    prefetch: int
    split: int = 1
    early: int = 0

    @property
    def block_n(self) -> int:
        """Columns of a block."""
        return self.threads_n * self.thread_n

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.threads_n * self.threads_k


class GemmSkinnyTemplate(SingleKernelTemplate[Matmul, SkinnySchedule]):
    """Products of at most 16 rows in every precision, with constant or computed ``b``."""

    name: ClassVar[str] = "gemm_skinny"
    version: ClassVar[int] = 3
    problem_type = Matmul
    schedule_type = SkinnySchedule

    def why_not(self, problem: Matmul, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        del target  # every GPU has ordinary cores
        for name, tensor in (("a", problem.a), ("b", problem.b)):
            if not tensor.dtype.multiplies:
                return f"{name} is {tensor.dtype.value}; products take floating point and bytes"
        if problem.m.value > FEW_ROWS:
            return f"{problem.m.value} rows; products of at most {FEW_ROWS} are bound by reading b"
        return why_normed(problem) or why_too_large(problem)

    def packing(self, problem: Matmul, schedule: SkinnySchedule) -> str | None:
        """Return the packing: columns of a constant ``b`` as rows, which neighbouring threads read in one piece."""
        del schedule  # every schedule reads the same rows
        return "nk_pad" if problem.b_constant else None

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """Tell apart what the models cannot weigh: a split, and whether bytes in flight are of few threads or of many."""
        families: NDArray[np.int64] = 2 * (columns["split"] > 1) + columns["prefetch"]
        return families

    def _axes(self, problem: Matmul, target: Target) -> dict[str, tuple[int, ...]]:
        return self._tiles(problem).axes(self._view(problem).sizes)

    def _limits(self, problem: Matmul) -> Sequence[Limit]:
        tiles = self._tiles(problem)
        return (*tiles.limits(), *split_limits(problem.k, step=tiles.step))

    def _target_limits(self, problem: Matmul, target: Target) -> Sequence[Limit]:
        return (*target_limits(target), useful_split(target))

    def work(self, problem: Matmul, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        view, tiles = self._view(problem), self._tiles(problem)
        block_m, block_n = columns["block_m"], tiles.block_n(columns)
        sizes = view.sizes
        outputs: Floats = np.ceil(sizes.rows / block_m) * np.ceil(view.stored_columns / block_n)
        return tiles.work(
            columns, outputs * sizes.products, problem.k, problem.y.dtype.bytes, target
        )

    def kernel(self, problem: Matmul, schedule: SkinnySchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        view, tiles = self._view(problem), self._tiles(problem)
        grid = view.grid(schedule.block_m, schedule.block_n, schedule.split)
        columns = schedule.columns()
        held = int(tiles.outputs(columns)[0]) * schedule.threads
        return KernelPlan(
            members={**view.members(1), **view.operand_members(), **_members(view, tiles)},
            grid=grid,
            threads=schedule.threads,
            shared_bytes=int(tiles.shared_bytes(columns)[0]),
            partials=Partials.of(grid, held * problem.numbers.bytes, schedule.split),
        )

    def _view(self, problem: Matmul) -> MatmulView:
        return MatmulView(problem, _MOST_TOGETHER)

    def _tiles(self, problem: Matmul) -> SkinnyTiles:
        view = self._view(problem)
        along = problem.b_constant or problem.b.strides[2] == 1
        return SkinnyTiles(
            a_bytes=problem.a.dtype.bytes,
            b_bytes=view.b_dtype.bytes,
            across=not along,
            vector=view.b_vector if along else view.b_vector_across,
            a_vector=view.a_vector,
            numbers=problem.numbers,
            converted=sum(each is not problem.numbers for each in (problem.a.dtype, view.b_dtype)),
        )


def _members(view: MatmulView, tiles: SkinnyTiles) -> Members:
    """How this header reads ``b``."""
    return {"b_across": tiles.across, "b_vector": tiles.vector}
