"""Rows copied to or from where two free dimensions say: of one sequence, of every sequence, its first one."""

from dataclasses import dataclass
from enum import StrEnum

from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.family import Family
from wpk.problems.operand import Tensor
from wpk.problems.phrases import extent_words
from wpk.problems.problem import Accesses, Problem, Traffic
from wpk.problems.signs import TIMES


class RowPlacing(StrEnum):
    """Where the rows of ``y`` come from; ``o`` counts sequences, ``i`` the rows of one."""

    REPEATED = "repeated"  # y[o, i] = x[i]: a table of positions
    SPREAD = "spread"  # y[o, i] = x[o]: what a sequence shares
    FIRST = "first"  # y[o] = x[o, 0]: the token that stands for a sequence


@dataclass(frozen=True)
class PlacedRows(Problem):
    """``y[o, i, :] = x[i, :]``, ``y[o, i, :] = x[o, :]`` or ``y[o, :] = x[o, 0, :]``, as `RowPlacing` says.

    Operator inputs: ``x``. Output: ``y``. Axes (o, i) are one in memory, so that the domains are (rows, cols).
    """

    placing: RowPlacing
    outer: Extent
    inner: Extent
    cols: int
    x: Tensor
    y: Tensor

    carries_double = True
    family = Family.MOVEMENT

    @property
    def leading(self) -> Extent:
        """Rows of ``y``."""
        first = self.placing is RowPlacing.FIRST
        return self.outer if first else self.outer.of(self.inner)

    @property
    def extents(self) -> tuple[Extent, ...]:
        """See `Problem.extents`."""
        return self.leading, self.outer, self.inner

    @property
    def source(self) -> Extent:
        """Rows of ``x``."""
        match self.placing:
            case RowPlacing.REPEATED:
                return self.inner
            case RowPlacing.SPREAD:
                return self.outer
        return self.outer.of(self.inner)

    def words(self) -> str:
        """See `Problem.words`."""
        rows = f"{extent_words(self.outer)}{TIMES}{extent_words(self.inner)}"
        return f"{self.placing} rows of {self.cols}, {rows}"

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        return {"outer": self.outer.value, "inner": self.inner.value, "cols": self.cols}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        return (Access(self.x, (self.source, self.cols)),), Access(
            self.y, (self.leading, self.cols)
        )

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; of ``FIRST`` one row a sequence is read."""
        read = min(self.source.value, self.leading.value) * self.cols * self.x.dtype.bytes
        return Traffic(read + self.accesses()[1].distinct_bytes, products=0, others=0)
