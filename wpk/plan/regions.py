"""Which bytes of a buffer a strided tensor occupies, and whether these lie within, or beside, another's.

A region is a start and axes of bytes, smallest step first: what remains of shape and strides when axes
of one element and of stride 0 are left out. Its axes never reach over each other, so that each byte
has one place on each of them. All answers are proofs: where none is found, the answer is no.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

_WHOLES = 16
"""Regions of a buffer that are looked at as the whole of which others are parts, largest first."""


class Axis(NamedTuple):
    """Bytes from one place to the next, and how many places there are."""

    step: int
    places: int


class Span(NamedTuple):
    """The first and the last place along an axis."""

    first: int
    last: int


@dataclass(frozen=True)
class Region:
    """Bytes of a buffer.

    Attributes:
        begin: The first one.
        axes: Smallest step first; the innermost has step 1. Each step is larger than what the axes
            in front of it reach.
    """

    begin: int
    axes: tuple[Axis, ...]

    @property
    def end(self) -> int:
        """The byte behind the last one."""
        return self.begin + sum((count - 1) * step for step, count in self.axes) + 1

    @property
    def bytes(self) -> int:
        """How many there are."""
        return prod(count for _, count in self.axes)

    def meets(self, other: "Region") -> bool:
        """Whether the ranges that two lie in have a byte in common."""
        return self.begin < other.end and other.begin < self.end

    @cached_property
    def merged(self) -> "Region":
        """The same bytes, with axes that continue each other joined: equal bytes are equal regions."""
        axes: list[Axis] = []
        for axis in self.axes:
            if axes and axis.step == axes[-1].step * axes[-1].places:
                axes[-1] = Axis(axes[-1].step, axes[-1].places * axis.places)
            else:
                axes.append(axis)
        return Region(self.begin, tuple(axes))

    def holds(self, other: "Region") -> bool:
        """Whether all bytes of another one are this one's."""
        return self.merged.places(other) is not None

    def places(self, other: "Region") -> tuple[Span, ...] | None:
        """A box of this region's axes that another one lies in; None where it is not inside."""
        first = self._place(other.begin - self.begin)
        if first is None:
            return None
        reach = [0] * len(self.axes)
        for axis in other.axes:
            if not self._add(reach, first, axis):
                return None
        return tuple(Span(at, at + more) for at, more in zip(first, reach, strict=True))

    def _place(self, offset: int) -> list[int] | None:
        """Where a byte lies along each axis; None where it is none of the region's."""
        found = []
        for step, count in reversed(self.axes):
            at = min(offset // step, count - 1)
            found.append(at)
            offset -= at * step
        return None if offset != 0 or any(at < 0 for at in found) else found[::-1]

    def _add(self, reach: list[int], first: Sequence[int], axis: Axis) -> bool:
        """Note how far another region's axis reaches along these; False where it leaves them."""
        step, count = axis
        number = max(n for n, own in enumerate(self.axes) if step % own.step == 0)
        own = self.axes[number]
        stride = step // own.step
        room = own.places - 1 - first[number] - reach[number]
        if (count - 1) * stride <= room:
            reach[number] += (count - 1) * stride
            return True
        return self._carry(reach, first, number, Axis(stride, count))

    def _carry(self, reach: list[int], first: Sequence[int], number: int, axis: Axis) -> bool:
        """The same for one that goes on along the next axis, which begins where this one ends."""
        own, (stride, count) = self.axes[number], axis
        turn = own.places // stride
        if number + 1 == len(self.axes) or own.places % stride or count % turn or turn == 1:
            return False
        if self.axes[number + 1].step != own.step * own.places:
            return False
        if first[number] + reach[number] + (turn - 1) * stride >= own.places:
            return False
        reach[number] += (turn - 1) * stride
        return self._add(reach, first, Axis(own.step * own.places, count // turn))


def region(
    begin: int, item: int, extents: Sequence[int], strides: Sequence[int], padding: int
) -> Region | None:
    """The bytes of a tensor.

    Args:
        begin: Its first byte.
        item: Bytes of an element.
        extents: Of its axes, at least 1.
        strides: In elements, at least 0.
        padding: Elements behind the last one of the contiguous axis that belong to it.

    Returns:
        The region; None where two elements that differ in more than a stride of 0 may be the same.
    """
    pairs = [(s, n) for n, s in zip(extents, strides, strict=True) if n > 1 and s > 0]
    pairs.sort()
    row = pairs.pop(0)[1] if pairs and pairs[0][0] == 1 else 1
    axes = [Axis(1, (row + padding) * item), *(Axis(s * item, n) for s, n in pairs)]
    reached = 0
    for step, count in axes:
        if step <= reached:
            return None
        reached += (count - 1) * step
    return Region(begin, tuple(axes))


class Parts:
    """Regions of one buffer, and what tells them apart: a place in some whole of which they are parts."""

    def __init__(self, wholes: Iterable[Region]) -> None:
        """Begin with none.

        Args:
            wholes: Regions that may hold several of them; the largest few are looked at.
        """
        ordered = sorted(dict.fromkeys(wholes), key=lambda each: -each.bytes)
        self._wholes = ordered[:_WHOLES]
        self._parts: list[tuple[Region, _Places]] = []
        self._complete: set[Region] = set()

    def add(self, part: Region) -> bool:
        """Take one that has no byte in common with any taken before; False where one may have."""
        places = self._places(part)
        if any(not _apart(part, places, *other) for other in self._parts):
            return False
        self._parts.append((part, places))
        return True

    def cover(self, wanted: Region) -> bool:
        """Whether all bytes of a region are in these: in one of them, or in parts that fill a whole."""
        if wanted not in self._complete:
            if not self._covers(wanted):
                return False
            self._complete.add(wanted)
        return True

    def _covers(self, wanted: Region) -> bool:
        if any(part.holds(wanted) for part, _ in self._parts):
            return True
        for whole in (wanted, *self._wholes):
            if whole.holds(wanted):
                inside = (part.bytes for part, _ in self._parts if whole.holds(part))
                if sum(inside) == whole.bytes:
                    return True
        return False

    def _places(self, part: Region) -> "_Places":
        return [whole.places(part) for whole in self._wholes]


_Places = list[tuple[Span, ...] | None]


def _apart(one: Region, its: _Places, other: Region, theirs: _Places) -> bool:
    if not one.meets(other):
        return True
    return any(
        a is not None
        and b is not None
        and any(x.last < y.first or y.last < x.first for x, y in zip(a, b, strict=True))
        for a, b in zip(its, theirs, strict=True)
    )
