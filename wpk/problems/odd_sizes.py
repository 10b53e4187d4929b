"""Odd, small sizes, and the layouts that go with them: what siblings of problems are made of."""

from collections.abc import Sequence
from dataclasses import replace

from wpk.extent import Extent
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.resized_layout import resized

BATCH = 3
"""Of what is free, or one: no power of two."""

ROWS = (65, 9)
"""Rows and columns: above tiles of 64, so that there is a whole one and a ragged one; and few, for
schedules of small tiles that are legal for few tiles alone."""

LEAST = 33
"""Of what is summed: more than a vector, and than one step of most schedules."""


def ragged(size: int, unit: int, least: int = 1) -> tuple[int, ...]:
    """Odd multiples of a unit, plus what the size has beyond whole units: from ``least`` on, growing.

    The last two are the nearest ones below and above the size.
    """
    whole, rest, found = size // unit, size % unit, list[int]()
    below, count = (whole - 2) | 1, -(-least // unit) | 1
    while count < below:
        found.append(count)
        count = 2 * count - 1 if count > 1 else 3
    found += [below] * (unit * below >= least) + [(whole + 1) | 1]
    return tuple(unit * each + rest for each in found)


def above(least: int, size: int, unit: int) -> int:
    """The like of a size that is ragged and no smaller than ``least``."""
    return (-(-least // unit) | 1) * unit + size % unit


def odd_extent(extent: Extent, size: int) -> Extent:
    """An extent of another size, decided by the same free dimension if it is free."""
    if extent.free is None:
        return Extent(size)
    factor = size // BATCH if extent.factor > 1 else 1
    return Extent(BATCH * factor if extent.factor > 1 else size, extent.free, factor)


def resized_epilogue(
    epilogue: Epilogue, before: Sequence[int], after: Sequence[int]
) -> Epilogue | None:
    """Its operands over other extents; None where one cannot be."""
    operands = all_of([resized(each, before, after) for each in epilogue.operands])
    return None if operands is None else replace(epilogue, operands=operands)


def all_of(tensors: Sequence[Tensor | None]) -> tuple[Tensor, ...] | None:
    """The tensors, if none of them is missing."""
    found = tuple(each for each in tensors if each is not None)
    return found if len(found) == len(tensors) else None


def unit_of(axis: int, *tensors: Tensor) -> int:
    """Elements along an axis whose multiples keep all alignments."""
    return max(
        (each.vector(axis) for each in tensors if sum(map(bool, each.strides)) > 1), default=1
    )
