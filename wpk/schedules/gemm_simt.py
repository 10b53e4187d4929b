"""Matrix product in fp32 or fp64 on the ordinary cores, with batch and broadcasting (gemm_simt.cuh)."""

from typing import ClassVar

from wpk.problems import Matmul
from wpk.schedules.matrix_template import MatrixTemplate
from wpk.schedules.row_norm import why_normed
from wpk.schedules.tiles.simt import SimtSchedule, SimtTiles
from wpk.schedules.views.matmul import MatmulView, why_too_large
from wpk.targets import Target

_ACCESS_BYTES = 16
"""Of the widest access to what is multiplied: so many elements travel together."""


class GemmSimtTemplate(MatrixTemplate[Matmul, SimtSchedule]):
    """Matrix products in every precision, with constant or computed ``b``."""

    name: ClassVar[str] = "gemm_simt"
    version: ClassVar[int] = 6
    problem_type = Matmul
    schedule_type = SimtSchedule

    def why_not(self, problem: Matmul, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        del target  # every GPU has ordinary cores
        for name, tensor in (("a", problem.a), ("b", problem.b)):
            if not tensor.dtype.multiplies:
                return f"{name} is {tensor.dtype.value}; products take floating point and bytes"
        return why_normed(problem) or why_too_large(problem)

    def packing(self, problem: Matmul, schedule: SimtSchedule) -> str | None:
        """Return the packing: columns of a constant ``b`` as rows."""
        del schedule  # every schedule reads the same rows
        return "nk_pad" if problem.b_constant else None

    def _view(self, problem: Matmul) -> MatmulView:
        return MatmulView(problem, _ACCESS_BYTES // problem.numbers.bytes)

    def _tiles(self, problem: Matmul) -> SimtTiles:
        view = self._view(problem)
        return SimtTiles(
            a_vector=view.a_vector,
            a_bytes=problem.a.dtype.bytes,
            b_vector=view.b_vector,
            b_bytes=view.b_dtype.bytes,
            numbers=problem.numbers,
        )
