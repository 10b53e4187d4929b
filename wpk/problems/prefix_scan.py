"""Running sums and products along rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.problems.access import Access, Axes
from wpk.problems.family import Family
from wpk.problems.operand import Tensor
from wpk.problems.phrases import extent_words
from wpk.problems.problem import Accesses, Problem, Traffic, counted_axes, does_not_lead
from wpk.problems.signs import TIMES


class ScanKind(StrEnum):
    """What runs along a row."""

    SUM = "sum"
    PROD = "prod"


@dataclass(frozen=True)
class PrefixScan(Problem):
    """``y[o..., j] = x[o..., 0] + ... + x[o..., j]``, or the product.

    From the end of the row instead where it is in ``reverse``; without the element itself where it is
    ``exclusive``. Operator inputs: ``x``. Domain of both: (outer..., size) where ``outer[0]`` is the leading
    extent, at most four axes outside. Floating point is summed in fp32, fp64
    and integers in their type.
    """

    kind: ScanKind
    exclusive: bool
    reverse: bool
    leading: Extent
    outer: tuple[int, ...]
    size: int
    x: Tensor
    y: Tensor

    carries_double = True
    family = Family.REDUCTION

    def words(self) -> str:
        """See `Problem.words`."""
        rows = TIMES.join((extent_words(self.leading), *map(str, self.outer[1:])))
        return f"running {self.kind}, {rows} rows of {self.size}"

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        outer = counted_axes("outer", (self.leading.value, *self.outer[1:]), 4)
        return {**outer, "size": self.size}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        domain: Axes = (self.leading, *self.outer[1:], self.size)
        return (Access(self.x, domain),), Access(self.y, domain)

    @property
    def numbers(self) -> DType:
        """See `Problem.numbers`."""
        return self.x.dtype if self.x.dtype is DType.FP64 else DType.FP32

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; the first element of a row is added to nothing."""
        rows = self.leading.value * prod(self.outer[1:])
        return Traffic(self.moved_bytes(), 0, rows * max(0, self.size - 1 - self.exclusive))

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return 2 * elements

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from does_not_lead("outer", self.outer, self.leading)
