"""Convolution on the tensor cores as an implicit matrix product (conv_mma.cuh).

Rows are output pixels (n, p, q), columns the filters of a group, the reduction runs over (r, s, c).
The input is copied as it lies where its channels are contiguous in the type of the products, else it
is gathered through registers: any strides, any floating type, so the first convolution reads the
model's own tensor.
"""

from collections.abc import Sequence
from typing import ClassVar

from wpk.dtypes import Precision
from wpk.performance import Columns, SharedAccess, Work
from wpk.problems import Convolution
from wpk.schedules import mma_banks, mma_tiles
from wpk.schedules.convolution_view import ConvolutionView, input_vector, why_too_large
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_tiles import target_limits
from wpk.schedules.mma_tiles import MULTIPLY_TYPES, MmaInputs, MmaSchedule
from wpk.schedules.single_kernel import KernelPlan, Partials, SingleKernelTemplate
from wpk.schedules.split import SplitReductions, split_limits, useful_split
from wpk.schedules.unit import Type
from wpk.targets import Target

_FILTER_COPY_BYTES = 16


class ConvMmaTemplate(SplitReductions, SingleKernelTemplate[Convolution, MmaSchedule]):
    """Plain, grouped, dilated, strided and transposed convolutions in every precision."""

    name: ClassVar[str] = "conv_mma"
    version: ClassVar[int] = 8
    problem_type = Convolution
    schedule_type = MmaSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if problem.is_depthwise:
            return "every group has one input channel: tensor cores would multiply zeros"
        if not problem.y.dtype.is_float:
            return f"the output is {problem.y.dtype.value}; products are stored as floating point"
        reason = mma_tiles.needs(problem.x.dtype, problem.precision, target)
        return reason or why_too_large(problem)

    def axes(self, problem: Convolution, target: Target) -> dict[str, tuple[int, ...]]:
        """See `ScheduleTemplate.axes`; tiles much larger than the problem are left out."""
        rows = problem.n.value * problem.p * problem.q
        columns = problem.k // problem.groups
        return mma_tiles.axes(rows, columns, _view(problem).reduction, problem.precision, target)

    def limits(self, problem: Convolution) -> Sequence[Limit]:
        """See `ScheduleTemplate.limits`."""
        return (
            *mma_tiles.limits(_inputs(problem)),
            *split_limits(_view(problem).reduction, problem.groups),
        )

    def target_limits(self, problem: Convolution, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`."""
        return (*target_limits(target), useful_split(target))

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        costs = mma_tiles.costs(columns, _inputs(problem))
        return _view(problem).product(columns, target).work(columns, costs)

    def shared_accesses(
        self, problem: Convolution, schedule: MmaSchedule
    ) -> Sequence[SharedAccess]:
        """See `ScheduleTemplate.shared_accesses`."""
        return mma_banks.shared_accesses(schedule, problem.precision.storage.bytes)

    def packing(self, problem: Convolution, schedule: MmaSchedule) -> str:
        """Filters as rows of (r, s, c), rounded to tf32 where the products are."""
        del schedule  # every schedule reads the same rows
        suffix = "_tf32" if problem.precision is Precision.TF32 else ""
        return _view(problem).packing + suffix

    def kernel(self, problem: Convolution, schedule: MmaSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        view = _view(problem)
        grid = view.grid(schedule.block_m, schedule.block_n, schedule.split)
        return KernelPlan(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                **view.members(),
                **view.dilation_members(),
                **view.input_members(),
                **view.row_members(),
            },
            inputs=view.inputs,
            leading=problem.leading,
            grid=grid,
            threads=schedule.threads,
            shared_bytes=int(mma_tiles.shared_bytes(schedule.columns(), _inputs(problem))[0]),
            partials=Partials.of(grid, schedule.block_m * schedule.block_n, schedule.split),
            attributes=schedule.attributes,
        )


def _view(problem: Convolution) -> ConvolutionView:
    return ConvolutionView(problem, _vector(problem), store_width=8)


def _vector(problem: Convolution) -> int:
    return input_vector(problem, mma_tiles.most_together(problem.precision))


def _inputs(problem: Convolution) -> MmaInputs:
    """How the operands reach shared memory: mirrors convCopiesInput of the header."""
    copy_bytes = _vector(problem) * problem.x.dtype.bytes
    copied = problem.x.dtype is problem.precision.storage and copy_bytes >= 4
    return MmaInputs(
        precision=problem.precision,
        copy_bytes_a=copy_bytes if copied else 0,
        copy_bytes_b=_FILTER_COPY_BYTES,
        gathered_bytes_a=problem.x.dtype.bytes,
        gathered_bytes_b=0,
    )
