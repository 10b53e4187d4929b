"""A batch of samples, and where a tensor holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]

Shape = tuple[int, ...]


class NotAloneError(Exception):
    """A node may mix samples or tell them apart: a few of them do not stand for all."""


class Along(NamedTuple):
    """Where samples lie in a tensor.

    Attributes:
        axis: The axis. Its extent is that of all samples, times what each has there, times the repetitions.
        times: How often all samples lie there, one behind the other.
    """

    axis: int
    times: int = 1


@dataclass(frozen=True)
class Batch:
    """Samples.

    Attributes:
        count: Of the whole batch.
        kept: The first ones, which are computed; at least 2, so that no axis that holds them has one element.
    """

    count: int
    kept: int

    def whole(self, extent: int) -> int:
        """Return what the extent of an axis that holds samples is for all of them."""
        return extent // self.kept * self.count

    def part(self, array: Array, along: Along) -> Array:
        """Return the elements of the samples that are kept, of an array that has all."""
        before, extent, behind = _around(array.shape, along.axis)
        own = extent // (self.count * along.times)
        each = array.reshape(*before, along.times, self.count, own, *behind)
        kept = each[(slice(None),) * (len(before) + 1) + (slice(self.kept),)]
        found: Array = kept.reshape(*before, along.times * self.kept * own, *behind)
        return found

    def alike(self, array: Array, along: Along) -> Array:
        """Return the same of an array that holds no samples, but numbers for each.

        Raises:
            NotAloneError: They are not the same for all samples.
        """
        before, extent, behind = _around(array.shape, along.axis)
        unit = self.count * along.times
        each = array.reshape(*before, along.times, self.count, extent // unit, *behind)
        first = each[(slice(None),) * (len(before) + 1) + (slice(1),)]
        if not bool(((each == first) | ((each != each) & (first != first))).all()):
            raise NotAloneError("a constant differs between samples")
        return self.part(array, along)


def _around(shape: Shape, axis: int) -> tuple[Shape, int, Shape]:
    return shape[:axis], shape[axis], shape[axis + 1 :]
