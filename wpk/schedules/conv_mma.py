"""Convolution on the tensor cores as an implicit matrix product (conv_mma.cuh).

Rows are output pixels (n, p, q), columns the filters of a group, the reduction runs over (r, s, c).
The input is copied as it lies where its channels are contiguous in the type of the products, else it
is gathered through registers: any strides, any floating type, so the first convolution reads the
model's own tensor.
"""

from typing import ClassVar

from wpk.dtypes import Precision
from wpk.problems import Convolution
from wpk.schedules.matrix_template import MatrixTemplate
from wpk.schedules.multiplication import multiplied_as, multiply_type
from wpk.schedules.tiles import mma
from wpk.schedules.tiles.mma import MmaSchedule, MmaTiles
from wpk.schedules.unit import Members
from wpk.schedules.views.convolution import ConvolutionView, input_vector, why_too_large
from wpk.targets import Target

_FILTER_COPY_BYTES = 16


class ConvMmaTemplate(MatrixTemplate[Convolution, MmaSchedule]):
    """Plain, grouped, dilated, strided and transposed convolutions in every precision."""

    name: ClassVar[str] = "conv_mma"
    version: ClassVar[int] = 11
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Convolution
    schedule_type = MmaSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if problem.is_depthwise:
            return "every group has one input channel: tensor cores would multiply zeros"
        reason = mma.needs(problem.x.dtype, problem.precision, target)
        return reason or why_too_large(problem)

    def packing(self, problem: Convolution, schedule: MmaSchedule) -> str:
        """Return the packing: filters as rows of (r, s, c), rounded to tf32 where the products are."""
        del schedule  # every schedule reads the same rows
        suffix = "_tf32" if problem.precision is Precision.TF32 else ""
        return self._view(problem).packing + suffix

    def _members(self, problem: Convolution) -> Members:
        precision = problem.precision
        return {"Multiply": multiply_type(precision, problem.x.dtype, precision.storage)}

    def _view(self, problem: Convolution) -> ConvolutionView:
        vector = input_vector(problem, mma.most_together(problem.precision))
        return ConvolutionView(problem, vector)

    def _tiles(self, problem: Convolution) -> MmaTiles:
        """How the operands reach shared memory: mirrors convCopiesInput of the header."""
        copy_bytes = self._view(problem).vector * problem.x.dtype.bytes
        copied = multiplied_as(problem.x.dtype, problem.precision) and copy_bytes >= 4
        return MmaTiles(
            precision=problem.precision,
            copy_bytes_a=copy_bytes if copied else 0,
            copy_bytes_b=_FILTER_COPY_BYTES,
            gathered_bytes_a=problem.x.dtype.bytes,
            gathered_bytes_b=0,
        )
