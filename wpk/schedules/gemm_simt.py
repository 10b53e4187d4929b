"""Matrix product in fp32 on the ordinary cores, with batch and broadcasting (gemm_simt.cuh)."""

from collections.abc import Sequence
from typing import ClassVar

from wpk.performance import Columns, SharedAccess, Work
from wpk.problems import Matmul
from wpk.schedules import simt_tiles
from wpk.schedules.early import launch_attributes
from wpk.schedules.limit import Limit
from wpk.schedules.matmul_view import MatmulView, why_too_large
from wpk.schedules.matrix_tiles import target_limits
from wpk.schedules.simt_tiles import SimtInputs, SimtSchedule
from wpk.schedules.single_kernel import KernelPlan, Partials, SingleKernelTemplate
from wpk.schedules.split import SplitReductions, split_limits, useful_split
from wpk.targets import Target

_VECTOR = 4
"""Elements that travel together at most."""


class GemmSimtTemplate(SplitReductions, SingleKernelTemplate[Matmul, SimtSchedule]):
    """Matrix products in every precision, with constant or computed ``b``."""

    name: ClassVar[str] = "gemm_simt"
    version: ClassVar[int] = 4
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
        return simt_tiles.axes(problem.m.value, problem.n, problem.k, target)

    def limits(self, problem: Matmul) -> Sequence[Limit]:
        """See `ScheduleTemplate.limits`."""
        return (
            *simt_tiles.limits(_inputs(problem)),
            *split_limits(problem.k),
        )

    def target_limits(self, problem: Matmul, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`."""
        return (*target_limits(target), useful_split(target))

    def work(self, problem: Matmul, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        costs = simt_tiles.costs(columns, _inputs(problem))
        return _view(problem, _VECTOR).product(columns, target).work(columns, costs)

    def shared_accesses(self, problem: Matmul, schedule: SimtSchedule) -> Sequence[SharedAccess]:
        """See `ScheduleTemplate.shared_accesses`."""
        del problem  # tiles are fp32 whatever its types
        return simt_tiles.shared_accesses(schedule)

    def packing(self, problem: Matmul, schedule: SimtSchedule) -> str | None:
        """Columns of a constant ``b`` as rows."""
        del schedule  # every schedule reads the same rows
        return "nk_pad" if problem.b_constant else None

    def kernel(self, problem: Matmul, schedule: SimtSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        view = _view(problem, schedule.run_n)
        grid = view.grid(schedule.block_m, schedule.block_n, schedule.split)
        return KernelPlan(
            members={**view.members(), **view.operand_members()},
            inputs=2 + len(problem.epilogue.operands),
            leading=problem.leading,
            grid=grid,
            threads=schedule.threads,
            shared_bytes=int(simt_tiles.shared_bytes(schedule.columns())[0]),
            partials=Partials.of(grid, schedule.block_m * schedule.block_n, schedule.split),
            attributes=launch_attributes(schedule.early),
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
