"""Convolution in fp32 on the ordinary cores as an implicit matrix product (conv_simt.cuh).

It carries strict fp32, and what tensor cores cannot do well: groups of a few channels. Tensors may be
of any floating type; products and sums are fp32.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from wpk.dims import ceil_div
from wpk.kernel_source import KernelSource
from wpk.launch import InputArgument, Launch, OutputArgument, SizeArgument
from wpk.performance.work import Columns, SharedAccess, Work
from wpk.problems.convolution import Convolution
from wpk.schedules import simt_tiles
from wpk.schedules.convolution_view import ConvolutionView, input_vector, why_too_large
from wpk.schedules.simt_tiles import SimtInputs, SimtSchedule
from wpk.schedules.template import Constraint, ScheduleTemplate
from wpk.schedules.unit import Entry, Type, kernel_source
from wpk.targets.target import Target

_VECTOR = 4
"""Elements that travel together at most; filters always do (kVectorW of the header)."""


class ConvSimtTemplate(ScheduleTemplate[Convolution, SimtSchedule]):
    """Plain, grouped, dilated, strided and transposed convolutions in every precision."""

    name: ClassVar[str] = "conv_simt"
    version: ClassVar[int] = 1
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
        del target  # its limits are constraints
        rows = problem.n.value * problem.p * problem.q
        return simt_tiles.axes(rows, problem.k // problem.groups)

    def constraints(self, problem: Convolution, target: Target) -> Sequence[Constraint]:
        """See `ScheduleTemplate.constraints`."""
        return simt_tiles.constraints(_inputs(problem), target)

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """What DeepCuts tables 6 to 8 count, for an implicit matrix product (see conv_mma)."""
        view = _view(problem, _VECTOR)
        threads = simt_tiles.threads(columns)
        block_m, block_n, block_k = (columns[f"block_{axis}"].astype(np.float64) for axis in "mnk")
        steps = np.ceil(view.reduction / block_k)
        rows = np.ceil(view.rows.value / block_m)
        block_flops = 2.0 * block_m * block_n * block_k * steps
        row_bytes = block_k * float(problem.precision.storage.bytes)
        filters = block_n * np.ceil(row_bytes / target.transaction_bytes)
        pixels = view.transactions(block_m, block_k, target)
        return Work(
            unit=None,
            element_bytes=problem.x.dtype.bytes,
            blocks=rows * np.ceil(view.stored_columns / block_n) * problem.groups,
            threads=threads,
            shared_bytes=simt_tiles.shared_bytes(columns),
            registers=simt_tiles.registers(columns, _inputs(problem)),
            block_flops=block_flops,
            thread_flops=block_flops / threads,
            block_transactions=steps * (filters + pixels),
            thread_loads=steps * simt_tiles.loads(columns),
            store_bytes=block_m * block_n * float(problem.y.dtype.bytes),
            steps=steps,
            stages=columns["prefetch"].astype(np.float64) + 1.0,
        )

    def shared_accesses(
        self, problem: Convolution, schedule: SimtSchedule
    ) -> Sequence[SharedAccess]:
        """See `ScheduleTemplate.shared_accesses`."""
        del problem  # tiles are fp32 whatever its types
        return simt_tiles.shared_accesses(schedule)

    def packing(self, problem: Convolution, schedule: SimtSchedule) -> str:
        """Filters as rows of (r, s, c)."""
        return _view(problem, schedule.run_n).packing

    def instantiate(self, problem: Convolution, schedule: SimtSchedule) -> tuple[KernelSource, ...]:
        """See `ScheduleTemplate.instantiate`."""
        members = {
            "W": Type(problem.precision.storage.c_name),
            **_view(problem, schedule.run_n).members(),
        }
        operands = len(problem.epilogue.operands)
        entry = Entry("conv_simt", "convSimt", schedule.threads, ("x", "w"), operands)
        return (kernel_source(entry, members, schedule),)

    def launches(self, problem: Convolution, schedule: SimtSchedule) -> tuple[Launch, ...]:
        """See `ScheduleTemplate.launches`."""
        (source,) = self.instantiate(problem, schedule)
        view = _view(problem, schedule.run_n)
        columns = {name: np.asarray([value]) for name, value in schedule.parameters()}
        count = 2 + len(problem.epilogue.operands)
        return (
            Launch(
                kernel=source.digest,
                entry=source.entry,
                grid=(
                    ceil_div(view.rows.expression, schedule.block_m),
                    -(-view.stored_columns // schedule.block_n),
                    problem.groups,
                ),
                block=(schedule.threads, 1, 1),
                shared_bytes=int(simt_tiles.shared_bytes(columns)[0]),
                arguments=(
                    *(InputArgument(i) for i in range(count)),
                    SizeArgument(problem.leading.expression),
                    OutputArgument(0),
                ),
            ),
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
