"""Matrix product on the tensor cores, with batch and broadcasting (gemm_mma.cuh)."""

from collections.abc import Sequence
from typing import ClassVar

from wpk.performance import Columns, SharedAccess, Work
from wpk.problems import Matmul
from wpk.schedules import mma_banks, mma_tiles
from wpk.schedules.limit import Limit
from wpk.schedules.matmul_view import MatmulView, why_too_large
from wpk.schedules.matrix_tiles import target_limits
from wpk.schedules.mma_tiles import MULTIPLY_TYPES, MmaInputs, MmaSchedule
from wpk.schedules.single_kernel import KernelPlan, Partials, SingleKernelTemplate
from wpk.schedules.split import SplitReductions, split_limits, useful_split
from wpk.schedules.unit import Type
from wpk.targets import Target

_MIN_COPY_BYTES = 4


class GemmMmaTemplate(SplitReductions, SingleKernelTemplate[Matmul, MmaSchedule]):
    """Matrix products in every precision, with constant or computed ``b``."""

    name: ClassVar[str] = "gemm_mma"
    version: ClassVar[int] = 6
    problem_type = Matmul
    schedule_type = MmaSchedule

    def why_not(self, problem: Matmul, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if not problem.y.dtype.is_float:
            return f"the output is {problem.y.dtype.value}; products are stored as floating point"
        for dtype in (problem.a.dtype, _view(problem).b_dtype):
            if (reason := mma_tiles.needs(dtype, problem.precision, target)) is not None:
                return reason
        return why_too_large(problem)

    def axes(self, problem: Matmul, target: Target) -> dict[str, tuple[int, ...]]:
        """See `ScheduleTemplate.axes`; tiles much larger than the problem are left out."""
        return mma_tiles.axes(problem.m.value, problem.n, problem.k, problem.precision, target)

    def limits(self, problem: Matmul) -> Sequence[Limit]:
        """See `ScheduleTemplate.limits`."""
        return (
            *mma_tiles.limits(_inputs(problem)),
            *split_limits(problem.k),
        )

    def target_limits(self, problem: Matmul, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`."""
        return (*target_limits(target), useful_split(target))

    def work(self, problem: Matmul, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        costs = mma_tiles.costs(columns, _inputs(problem))
        return _view(problem).product(columns, target).work(columns, costs)

    def shared_accesses(self, problem: Matmul, schedule: MmaSchedule) -> Sequence[SharedAccess]:
        """See `ScheduleTemplate.shared_accesses`."""
        element = problem.precision.storage.bytes
        return mma_banks.shared_accesses(schedule, element, _inputs(problem).b_across)

    def packing(self, problem: Matmul, schedule: MmaSchedule) -> str | None:
        """See `MatmulView.packing`."""
        del schedule  # every schedule reads the same rows
        return _view(problem).packing

    def kernel(self, problem: Matmul, schedule: MmaSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        view = _view(problem)
        grid = view.grid(schedule.block_m, schedule.block_n, schedule.split)
        return KernelPlan(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                **view.members(),
                **view.operand_members(),
                "b_vector_across": view.b_vector_across,
            },
            inputs=2 + len(problem.epilogue.operands),
            leading=problem.leading,
            grid=grid,
            threads=schedule.threads,
            shared_bytes=int(mma_tiles.shared_bytes(schedule.columns(), _inputs(problem))[0]),
            partials=Partials.of(grid, schedule.block_m * schedule.block_n, schedule.split),
            attributes=schedule.attributes,
        )


def _view(problem: Matmul) -> MatmulView:
    return MatmulView(problem, max_vector=mma_tiles.most_together(problem.precision))


def _inputs(problem: Matmul) -> MmaInputs:
    """How the operands reach shared memory: mirrors Loading of the header."""
    view, stored = _view(problem), problem.precision.storage
    a_bytes = view.a_vector * problem.a.dtype.bytes
    a_copied = problem.a.dtype is stored and a_bytes >= _MIN_COPY_BYTES
    b_bytes = view.b_vector * view.b_dtype.bytes
    across_bytes = view.b_vector_across * view.b_dtype.bytes
    b_same = view.b_dtype is stored
    b_copied = b_same and b_bytes >= _MIN_COPY_BYTES
    b_across = not b_copied and b_same and stored.bytes == 2 and across_bytes >= _MIN_COPY_BYTES
    return MmaInputs(
        precision=problem.precision,
        copy_bytes_a=a_bytes if a_copied else 0,
        copy_bytes_b=b_bytes if b_copied else 0,
        gathered_bytes_a=problem.a.dtype.bytes,
        gathered_bytes_b=view.b_dtype.bytes,
        b_across=b_across,
    )
