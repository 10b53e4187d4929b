"""Where the largest or smallest elements of rows are."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from wpk.extent import Extent
from wpk.problems.access import Access, Axes
from wpk.problems.family import Family
from wpk.problems.operand import Tensor
from wpk.problems.phrases import extent_words
from wpk.problems.problem import Accesses, Problem, Traffic, counted_axes, does_not_lead
from wpk.problems.signs import TIMES


@dataclass(frozen=True)
class TopIndices(Problem):
    """``y[o..., j] = i``: x[o..., i] is the j-th of its row, the largest (or smallest) one first.

    Equal elements stand in the order of their indices, or in the opposite one where the last of equals
    comes first; NaN is larger than every number. Operator inputs: ``x``. Domain of x: (outer..., size)
    where ``outer[0]`` is the leading extent, at most four axes outside; of y: (outer..., count).
    (TopK's indices; ArgMax and ArgMin where count is 1.)
    """

    largest: bool
    last: bool
    leading: Extent
    outer: tuple[int, ...]
    size: int
    count: int
    x: Tensor
    y: Tensor

    carries_double = True
    family = Family.REDUCTION

    def words(self) -> str:
        """See `Problem.words`."""
        which = "largest" if self.largest else "smallest"
        rows = TIMES.join((extent_words(self.leading), *map(str, self.outer[1:])))
        count = "" if self.count == 1 else f" {self.count}"
        return f"indices of the{count} {which}, {rows} rows of {self.size}"

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        outer = counted_axes("outer", (self.leading.value, *self.outer[1:]), 4)
        return {**outer, "size": self.size, "count": self.count}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        outer: Axes = (self.leading, *self.outer[1:])
        return (Access(self.x, (*outer, self.size)),), Access(self.y, (*outer, self.count))

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; each element of a row is compared once at least."""
        compared = self.leading.value * prod(self.outer[1:]) * (self.size - 1)
        return Traffic(self.moved_bytes(), 0, compared)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * self.size

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from does_not_lead("outer", self.outer, self.leading)
        if not 1 <= self.count <= self.size:
            yield "count", f"{self.count} of {self.size} elements"
