"""Convolution in fp32 on the ordinary cores as an implicit matrix product (conv_simt.cuh).

It carries strict fp32, and what tensor cores cannot do well: groups of a few channels. Tensors may be
of any floating type; products and sums are fp32.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from wpk.performance.work import Columns, SharedAccess, Work
from wpk.problems.convolution import Convolution
from wpk.schedules import simt_tiles
from wpk.schedules.convolution_view import ConvolutionView, input_vector, why_too_large
from wpk.schedules.simt_tiles import SimtInputs, SimtSchedule
from wpk.schedules.single_kernel import Kernel, SingleKernelTemplate
from wpk.schedules.template import Constraint
from wpk.schedules.unit import Type
from wpk.targets.target import Target

_VECTOR = 4
"""Elements that travel together at most; filters always do (kVectorW of the header)."""


class ConvSimtTemplate(SingleKernelTemplate[Convolution, SimtSchedule]):
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

    def kernel(self, problem: Convolution, schedule: SimtSchedule) -> Kernel:
        """See `SingleKernelTemplate.kernel`."""
        view = _view(problem, schedule.run_n)
        return Kernel(
            members={
                "W": Type(problem.precision.storage.c_name),
                **view.members(),
            },
            inputs=2 + len(problem.epilogue.operands),
            leading=problem.leading,
            grid=view.grid(schedule.block_m, schedule.block_n),
            threads=schedule.threads,
            shared_bytes=int(simt_tiles.shared_bytes(schedule.columns())[0]),
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
