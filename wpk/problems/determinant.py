"""Determinants of square matrices."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.problems.access import Access, Axes
from wpk.problems.family import Family
from wpk.problems.operand import Tensor
from wpk.problems.phrases import by, extent_words
from wpk.problems.problem import Accesses, Problem, Traffic, counted_axes, does_not_lead
from wpk.problems.signs import TIMES


@dataclass(frozen=True)
class Determinant(Problem):
    """``y[o...] = det(x[o..., :, :])`` by elimination with row pivots, in fp32, or in fp64.

    Operator inputs: ``x``. Domain of x: (outer..., size, size) where ``outer[0]`` is the leading extent, at most
    four axes outside; of y: (outer...).
    """

    leading: Extent
    outer: tuple[int, ...]
    size: int
    x: Tensor
    y: Tensor

    carries_double = True
    family = Family.REDUCTION

    @property
    def numbers(self) -> DType:
        """See `Problem.numbers`."""
        return self.x.dtype if self.x.dtype is DType.FP64 else DType.FP32

    def words(self) -> str:
        """See `Problem.words`."""
        count = TIMES.join((extent_words(self.leading), *map(str, self.outer[1:])))
        return f"determinants of {count} matrices of {by((self.size, self.size))}"

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        outer = counted_axes("outer", (self.leading.value, *self.outer[1:]), 4)
        return {**outer, "size": self.size}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        outer: Axes = (self.leading, *self.outer[1:])
        return (Access(self.x, (*outer, self.size, self.size)),), Access(self.y, outer)

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; every element is an operand once at least."""
        matrices = self.leading.value * prod(self.outer[1:])
        return Traffic(self.moved_bytes(), 0, matrices * (self.size**2 - 1))

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * self.size**3

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from does_not_lead("outer", self.outer, self.leading)
        if self.size > MOST_ROWS:
            yield "size", f"{self.size} rows, at most {MOST_ROWS} are carried"


MOST_ROWS = 110
"""Of a matrix of fp32 that shared memory holds: it is where the elimination happens."""
