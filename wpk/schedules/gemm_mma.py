"""Matrix product on the tensor cores, with batch and broadcasting (gemm_mma.cuh)."""

from collections.abc import Sequence
from typing import ClassVar

from wpk.performance import Columns, Work
from wpk.problems import Matmul
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_template import MatrixTemplate
from wpk.schedules.multiplication import multiplied_as, multiply_type
from wpk.schedules.row_norm import (
    fragment_products,
    fragment_slots,
    moments_moved,
    norm_limits,
)
from wpk.schedules.tiles import mma
from wpk.schedules.tiles.mma import MmaSchedule, MmaTiles
from wpk.schedules.unit import Members
from wpk.schedules.views.matmul import MatmulView, why_too_large
from wpk.targets import Target

_MIN_COPY_BYTES = 4


_PRODUCT_CYCLES = 6.4
"""Of a scheduler's tensor core for 16 x 8 x 16 products, which wait for those of the tile: 2048 at `WARP_MMA_SHARE` of
512 in a cycle."""


class GemmMmaTemplate(MatrixTemplate[Matmul, MmaSchedule]):
    """Matrix products in every precision, with constant or computed ``b``."""

    name: ClassVar[str] = "gemm_mma"
    version: ClassVar[int] = 11
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Matmul
    schedule_type = MmaSchedule

    def why_not(self, problem: Matmul, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        for dtype in (problem.a.dtype, self._view(problem).b_dtype):
            if (reason := mma.needs(dtype, problem.precision, target)) is not None:
                return reason
        return why_too_large(problem)

    def _limits(self, problem: Matmul) -> Sequence[Limit]:
        return (*super()._limits(problem), *norm_limits(problem, "(block_n // warps_n)"))

    def work(self, problem: Matmul, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        return moments_moved(super().work(problem, columns, target), problem, columns, target)

    def packing(self, problem: Matmul, schedule: MmaSchedule) -> str | None:
        """See `MatmulView.packing`."""
        del schedule  # every schedule reads the same rows
        return self._view(problem).packing

    def _members(self, problem: Matmul) -> Members:
        return {
            "Multiply": multiply_type(
                problem.precision, problem.a.dtype, self._view(problem).b_dtype
            ),
            "b_vector_across": self._view(problem).b_vector_across,
        }

    def _view(self, problem: Matmul) -> MatmulView:
        return MatmulView(problem, mma.most_together(problem.precision))

    def _tiles(self, problem: Matmul) -> MmaTiles:
        """How the operands reach shared memory: mirrors Loading of the header."""
        view, precision = self._view(problem), problem.precision
        stored = precision.storage
        a_bytes = view.a_vector * problem.a.dtype.bytes
        a_copied = multiplied_as(problem.a.dtype, precision) and a_bytes >= _MIN_COPY_BYTES
        b_bytes = view.b_vector * view.b_dtype.bytes
        across_bytes = view.b_vector_across * view.b_dtype.bytes
        b_same = multiplied_as(view.b_dtype, precision)
        b_copied = b_same and b_bytes >= _MIN_COPY_BYTES
        b_across = not b_copied and b_same and stored.bytes == 2 and across_bytes >= _MIN_COPY_BYTES
        return MmaTiles(
            precision=precision,
            copy_bytes_a=a_bytes if a_copied else 0,
            copy_bytes_b=b_bytes if b_copied else 0,
            gathered_bytes_a=problem.a.dtype.bytes,
            gathered_bytes_b=view.b_dtype.bytes,
            b_across=b_across,
            fragment_slots=fragment_slots(problem) + _PRODUCT_CYCLES * fragment_products(problem),
        )
