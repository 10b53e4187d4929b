"""Convolution in fp32 on the ordinary cores as an implicit matrix product (conv_simt.cuh).

It carries strict fp32, and what tensor cores cannot do well: groups of a few channels. Tensors may be
of any floating type; products and sums are fp32.
"""

from collections.abc import Sequence
from typing import ClassVar

from wpk.performance import Columns, SharedAccess, Work
from wpk.problems import Convolution
from wpk.schedules import simt_tiles
from wpk.schedules.convolution_view import ConvolutionView, input_vector, why_too_large
from wpk.schedules.early import launch_attributes
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_tiles import target_limits
from wpk.schedules.simt_tiles import SimtInputs, SimtSchedule
from wpk.schedules.single_kernel import KernelPlan, Partials, SingleKernelTemplate
from wpk.schedules.split import SplitReductions, split_limits, useful_split
from wpk.schedules.unit import Type
from wpk.targets import Target

_VECTOR = 4
"""Elements that travel together at most; filters always do (kVectorW of the header)."""


class ConvSimtTemplate(SplitReductions, SingleKernelTemplate[Convolution, SimtSchedule]):
    """Plain, grouped, dilated, strided and transposed convolutions in every precision."""

    name: ClassVar[str] = "conv_simt"
    version: ClassVar[int] = 6
    problem_type = Convolution
    schedule_type = SimtSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        del target  # every GPU has ordinary cores
        for name, dtype in (("input", problem.x.dtype), ("output", problem.y.dtype)):
            if not dtype.is_float:
                return f"the {name} is {dtype.value}; convolutions take floating point"
        return why_too_large(problem)

    def axes(self, problem: Convolution, target: Target) -> dict[str, tuple[int, ...]]:
        """See `ScheduleTemplate.axes`; tiles much larger than the problem are left out."""
        rows = problem.n.value * problem.p * problem.q
        columns, reduction = problem.k // problem.groups, _view(problem, _VECTOR).reduction
        return simt_tiles.axes(rows, columns, reduction, target)

    def limits(self, problem: Convolution) -> Sequence[Limit]:
        """See `ScheduleTemplate.limits`."""
        return (
            *simt_tiles.limits(_inputs(problem)),
            *split_limits(_view(problem, _VECTOR).reduction, problem.groups),
        )

    def target_limits(self, problem: Convolution, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`."""
        return (*target_limits(target), useful_split(target))

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        costs = simt_tiles.costs(columns, _inputs(problem))
        return _view(problem, _VECTOR).product(columns, target).work(columns, costs)

    def shared_accesses(
        self, problem: Convolution, schedule: SimtSchedule
    ) -> Sequence[SharedAccess]:
        """See `ScheduleTemplate.shared_accesses`."""
        del problem  # tiles are fp32 whatever its types
        return simt_tiles.shared_accesses(schedule)

    def packing(self, problem: Convolution, schedule: SimtSchedule) -> str:
        """Filters as rows of (r, s, c)."""
        return _view(problem, schedule.run_n).packing

    def kernel(self, problem: Convolution, schedule: SimtSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        view = _view(problem, schedule.run_n)
        grid = view.grid(schedule.block_m, schedule.block_n, schedule.split)
        return KernelPlan(
            members={
                "W": Type(problem.precision.storage.c_name),
                **view.members(),
                **view.dilation_members(),
                **view.input_members(),
                **view.row_members(),
            },
            inputs=view.inputs,
            leading=problem.leading,
            grid=grid,
            threads=schedule.threads,
            shared_bytes=int(simt_tiles.shared_bytes(schedule.columns())[0]),
            partials=Partials.of(grid, schedule.block_m * schedule.block_n, schedule.split),
            attributes=launch_attributes(schedule.early),
        )


def _view(problem: Convolution, store_width: int) -> ConvolutionView:
    return ConvolutionView(problem, input_vector(problem, _VECTOR), store_width)


def _inputs(problem: Convolution) -> SimtInputs:
    return SimtInputs(
        a_vector=input_vector(problem, _VECTOR),
        a_bytes=problem.x.dtype.bytes,
        b_vector=_VECTOR,
        b_bytes=problem.precision.storage.bytes,
    )
