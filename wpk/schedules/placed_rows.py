"""Rows copied to where two free dimensions say."""

from typing import ClassVar

from wpk.dims import DimExpr
from wpk.performance import Floats
from wpk.problems import PlacedRows, RowPlacing
from wpk.schedules.streaming import narrow_access
from wpk.schedules.strided import cpp_tensor, vector_widths, why_unaddressable, why_unpaddable
from wpk.schedules.unit import Members, Type
from wpk.schedules.vector_template import Reads, VectorTemplate
from wpk.targets import Target

_COLUMN = 1


class PlacedRowsTemplate(VectorTemplate[PlacedRows]):
    """A thread finds its row by one division, and moves a piece of it; elements are moved exactly."""

    name: ClassVar[str] = "placed_rows"
    version: ClassVar[int] = 1
    problem_type = PlacedRows

    def why_not(self, problem: PlacedRows, target: Target) -> str | None:
        """Refuse padding not along rows."""
        del target
        reason = why_unaddressable([problem.x, problem.y], (1, problem.cols))
        return reason or why_unpaddable(problem.y, (_COLUMN,))

    def _vectors(self, problem: PlacedRows) -> tuple[int, ...]:
        return vector_widths([problem.x, problem.y], _COLUMN, problem.cols + problem.y.padding)

    def _items(self, problem: PlacedRows, vector: int) -> int:
        """Pieces of a row."""
        return -(-(problem.cols + problem.y.padding) // vector)

    def _sizes(self, problem: PlacedRows) -> tuple[DimExpr, ...]:
        """Rows that belong together."""
        return (problem.inner.expression,)

    def _reads(self, problem: PlacedRows, vector: Floats, threads: Floats, blocks: Floats) -> Reads:
        """A row of x for every row of y."""
        del threads, blocks
        size, elements = problem.x.dtype.bytes, float(problem.leading.value * problem.cols)
        return Reads(
            flops=elements,
            loads=elements * size * narrow_access(vector, size),
            registers=24.0 + 2 * vector,
        )

    def _members(self, problem: PlacedRows) -> Members:
        return {
            "X": Type(cpp_tensor(problem.x, (0, _COLUMN))),
            "Y": Type(cpp_tensor(problem.y, (0, _COLUMN))),
            "repeated": problem.placing is RowPlacing.REPEATED,
            "spread": problem.placing is RowPlacing.SPREAD,
            "columns": problem.cols,
            "rowPadding": problem.y.padding,
        }
