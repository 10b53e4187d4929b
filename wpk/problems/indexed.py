"""Elements at places that an index tensor names: read from there, or written there."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from wpk.extent import Extent
from wpk.problems.access import Access, Axes
from wpk.problems.family import Family
from wpk.problems.operand import Tensor
from wpk.problems.phrases import by, extent_words, sentence
from wpk.problems.problem import Accesses, Problem, Traffic, counted_axes, does_not_lead
from wpk.problems.signs import TIMES


@dataclass(frozen=True)
class IndexedRead(Problem):
    """``y[d...] = data[d..., p...]`` where ``p[j] = index[d..., j]``; negative indices count from the end.

    Operator inputs: ``data, index``. Domain of y: ``shape``, at most four axes, of which the first is
    the leading extent; of data: (shape..., sizes...), with stride 0 along axes of the domain that do
    not lead to another element; of index: (shape..., len(sizes)). An index outside its axis reads as
    NaN or 0, as `Gather`'s does. (GatherElements has one index for each element, GatherND a tuple for
    each slice.)

    Attributes:
        shape: The domain.
        sizes: Extents of the axes along which indices pick.
    """

    leading: Extent
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    data: Tensor
    index: Tensor
    y: Tensor

    carries_double = True
    family = Family.MOVEMENT

    def words(self) -> str:
        """See `Problem.words`."""
        sizes = TIMES.join((extent_words(self.leading), *map(str, self.shape[1:])))
        return f"read {sizes} by indices into {by(self.sizes)}"

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        axes = counted_axes("shape", (self.leading.value, *self.shape[1:]), 4)
        return {**axes, "indexed": len(self.sizes), "table": prod(self.sizes)}

    @property
    def _domain(self) -> Axes:
        return (self.leading, *self.shape[1:])

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        data = Access(self.data, (*self._domain, *self.sizes))
        index = Access(self.index, (*self._domain, len(self.sizes)))
        return (data, index), Access(self.y, self._domain)

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; every index may name the same element."""
        (_, index), y = self.accesses()
        assert index is not None
        element = Access(self.data, (*self._domain, *(1 for _ in self.sizes)))
        return Traffic(index.distinct_bytes + element.distinct_bytes + y.distinct_bytes, 0, 0)

    def table_size(self, operand: int) -> int:
        """See `Problem.table_size`; a tuple's numbers are all below the smallest of its axes."""
        return min(self.sizes) if operand == 1 else 0

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from does_not_lead("shape", self.shape, self.leading)
        if not self.sizes or min(self.sizes) < 1:
            yield "sizes", f"{self.sizes} have nothing to pick from"


class WriteKind(StrEnum):
    """What becomes of the element that is there already; ONNX's ``reduction``."""

    NONE = "none"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


class Advance(StrEnum):
    """How the places of updates that share an index follow each other."""

    NONE = "none"
    LINEAR = "linear"
    CIRCULAR = "circular"


@dataclass(frozen=True)
class IndexedWrite(Problem):
    """``y = data``, into which updates are written, in their order: ``y[o..., p, i] = f(y[o..., p, i], u)``.

    ``u = updates[o..., j, i]`` and p is the place that the numbers ``index[o..., j, i, :]`` have in
    ``sizes``; f is ``kind``, the update itself where that is none, so that the last one stays.
    Negative indices count from the end; an update whose index lies outside is left out. That is what
    OneHot means by one; where it ``skips`` none, the model's inputs must not hold any.

    Where it advances, update j goes j places behind its index: linear, or from the last place on to the
    first (TensorScatter, which writes new rows into a cache).

    Operator inputs: ``data, index, updates``. Domain of data and y: (outer..., prod(sizes), inner);
    of index: (outer..., count, inner, len(sizes)); of updates: (outer..., count, inner). Sums and
    products of floating point numbers are fp32.

    Attributes:
        outer: Two extents, of which the first is the leading one.
        sizes: Extents of the axes along which indices pick.
        count: Updates that may go to an element.
        skips: Whether an index may lie outside.
        advance: Whether updates follow each other from their index on.
    """

    kind: WriteKind
    leading: Extent
    outer: tuple[int, ...]
    sizes: tuple[int, ...]
    count: int
    inner: int
    skips: bool
    advance: Advance
    data: Tensor
    index: Tensor
    updates: Tensor
    y: Tensor

    carries_double = True
    family = Family.MOVEMENT

    @property
    def size(self) -> int:
        """Places that an index can name."""
        return prod(self.sizes)

    def words(self) -> str:
        """See `Problem.words`."""
        outer = [extent_words(self.leading), *map(str, self.outer[1:])]
        kept = TIMES.join(each for each in outer if each != "1")
        what = "write" if self.kind is WriteKind.NONE else f"write ({self.kind})"
        places = f"{self.count} of {by(self.sizes)} rows of {self.inner}"
        return sentence(what, f"{kept} times" if kept else "", places)

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        outer = counted_axes("outer", (self.leading.value, *self.outer[1:]), 2)
        return {**outer, "size": self.size, "count": self.count, "inner": self.inner}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        outer: Axes = (self.leading, *self.outer[1:])
        index = Access(self.index, (*outer, self.count, self.inner, len(self.sizes)))
        updates = Access(self.updates, (*outer, self.count, self.inner))
        data, y = (Access(each, (*outer, self.size, self.inner)) for each in (self.data, self.y))
        return (data, index, updates), y

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; updates may all be left out, or write over all of the data."""
        (_, index, _), y = self.accesses()
        assert index is not None
        return Traffic(index.distinct_bytes + y.distinct_bytes, 0, 0)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * (1 + self.count)

    def table_size(self, operand: int) -> int:
        """See `Problem.table_size`; a tuple's numbers are all below the smallest of its axes."""
        if operand != 1 or self.skips:
            return 0
        linear = self.advance is Advance.LINEAR
        return max(1, min(self.sizes) - (self.count - 1 if linear else 0))

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from does_not_lead("outer", self.outer, self.leading)
        if len(self.outer) != 2:
            yield "outer", f"{self.outer} are not two extents"
        if not self.sizes or min(self.sizes) < 1:
            yield "sizes", f"{self.sizes} have no place to write to"
        elif self.advance is not Advance.NONE and (len(self.sizes) > 1 or self.count > self.size):
            yield "advance", f"{self.count} updates along axes {self.sizes}"
