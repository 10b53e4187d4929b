"""Matrix product in fp32 on the ordinary cores, with batch and broadcasting (gemm_simt.cuh)."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from wpk.performance.work import Columns, SharedAccess, Work
from wpk.problems.matmul import Matmul
from wpk.schedules import simt_tiles
from wpk.schedules.matmul_view import MatmulView, why_too_large
from wpk.schedules.simt_tiles import SimtInputs, SimtSchedule
from wpk.schedules.single_kernel import Kernel, SingleKernelTemplate
from wpk.schedules.template import Constraint
from wpk.targets.target import Target

_VECTOR = 4
"""Elements that travel together at most."""


class GemmSimtTemplate(SingleKernelTemplate[Matmul, SimtSchedule]):
    """Matrix products in every precision, with constant or computed ``b``."""

    name: ClassVar[str] = "gemm_simt"
    version: ClassVar[int] = 1
    problem_type = Matmul
    schedule_type = SimtSchedule

    def why_not(self, problem: Matmul, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        del target  # every GPU has ordinary cores
        for name, tensor in (("a", problem.a), ("b", problem.b), ("y", problem.y)):
            if not tensor.dtype.is_float:
                return f"{name} is {tensor.dtype.value}; matrix products take floating point"
        return why_too_large(problem)

    def axes(self, problem: Matmul, target: Target) -> dict[str, tuple[int, ...]]:
        """See `ScheduleTemplate.axes`; tiles much larger than the problem are left out."""
        del target  # its limits are constraints
        return simt_tiles.axes(problem.m.value, problem.n)

    def constraints(self, problem: Matmul, target: Target) -> Sequence[Constraint]:
        """See `ScheduleTemplate.constraints`."""
        return simt_tiles.constraints(_inputs(problem), target)

    def work(self, problem: Matmul, columns: Columns, target: Target) -> Work:
        """What DeepCuts tables 6 to 8 count for a matrix product: every step loads both tiles."""
        view = _view(problem, _VECTOR)
        threads = simt_tiles.threads(columns)
        block_m, block_n, block_k = (columns[f"block_{axis}"].astype(np.float64) for axis in "mnk")
        steps = np.ceil(problem.k / block_k)
        batch = problem.batch[0].value * problem.batch[1]
        tiles = np.ceil(problem.m.value / block_m) * np.ceil(view.stored_columns / block_n)
        block_flops = 2.0 * block_m * block_n * block_k * steps
        transactions = view.transactions(block_m, block_k, target) + view.transactions(
            block_n, block_k, target, of_b=True
        )
        return Work(
            unit=None,
            element_bytes=problem.a.dtype.bytes,
            blocks=batch * tiles,
            threads=threads,
            shared_bytes=simt_tiles.shared_bytes(columns),
            registers=simt_tiles.registers(columns, _inputs(problem)),
            block_flops=block_flops,
            thread_flops=block_flops / threads,
            block_transactions=steps * transactions,
            thread_loads=steps * simt_tiles.loads(columns),
            store_bytes=block_m * block_n * float(problem.y.dtype.bytes),
            steps=steps,
            stages=columns["prefetch"].astype(np.float64) + 1.0,
        )

    def shared_accesses(self, problem: Matmul, schedule: SimtSchedule) -> Sequence[SharedAccess]:
        """See `ScheduleTemplate.shared_accesses`."""
        del problem  # tiles are fp32 whatever its types
        return simt_tiles.shared_accesses(schedule)

    def packing(self, problem: Matmul, schedule: SimtSchedule) -> str | None:
        """Columns of a constant ``b`` as rows."""
        del schedule  # every schedule reads the same rows
        return "nk_pad" if problem.b_constant else None

    def kernel(self, problem: Matmul, schedule: SimtSchedule) -> Kernel:
        """See `SingleKernelTemplate.kernel`."""
        view = _view(problem, schedule.run_n)
        return Kernel(
            members=view.members(),
            inputs=2 + len(problem.epilogue.operands),
            leading=problem.leading,
            grid=view.grid(schedule.block_m, schedule.block_n),
            threads=schedule.threads,
            shared_bytes=int(simt_tiles.shared_bytes(schedule.columns())[0]),
        )


def _view(problem: Matmul, store_width: int) -> MatmulView:
    return MatmulView(problem, store_width, _VECTOR)


def _inputs(problem: Matmul) -> SimtInputs:
    view = _view(problem, _VECTOR)
    return SimtInputs(
        a_vector=view.a_vector,
        a_bytes=problem.a.dtype.bytes,
        b_vector=view.b_vector,
        b_bytes=view.b_dtype.bytes,
    )
