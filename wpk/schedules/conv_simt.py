"""Convolution in fp32 on the ordinary cores as an implicit matrix product (conv_simt.cuh).

It carries strict fp32, and what tensor cores cannot do well: groups of a few channels. Tensors may be
of any floating type; products and sums are fp32.
"""

from typing import ClassVar

from wpk.problems import Convolution
from wpk.schedules.matrix_template import MatrixTemplate
from wpk.schedules.tiles.simt import SimtSchedule, SimtTiles
from wpk.schedules.unit import Members, Type
from wpk.schedules.views.convolution import ConvolutionView, input_vector, why_too_large
from wpk.targets import Target

_VECTOR = 4
"""Elements that travel together at most; filters always do (kVectorW of the header)."""


class ConvSimtTemplate(MatrixTemplate[Convolution, SimtSchedule]):
    """Plain, grouped, dilated, strided and transposed convolutions in every precision."""

    name: ClassVar[str] = "conv_simt"
    version: ClassVar[int] = 8
    problem_type = Convolution
    schedule_type = SimtSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        del target  # every GPU has ordinary cores
        if not problem.x.dtype.multiplies:
            return f"the input is {problem.x.dtype.value}; products take floating point and bytes"
        return why_too_large(problem)

    def packing(self, problem: Convolution, schedule: SimtSchedule) -> str:
        """Return the packing: filters as rows of (r, s, c)."""
        del schedule  # every schedule reads the same rows
        return self._view(problem).packing

    def _members(self, problem: Convolution) -> Members:
        return {"W": Type(problem.precision.storage.c_name)}

    def _view(self, problem: Convolution) -> ConvolutionView:
        return ConvolutionView(problem, input_vector(problem, _VECTOR))

    def _tiles(self, problem: Convolution) -> SimtTiles:
        return SimtTiles(
            a_vector=self._view(problem).vector,
            a_bytes=problem.x.dtype.bytes,
            b_vector=_VECTOR,
            b_bytes=problem.precision.storage.bytes,
        )
