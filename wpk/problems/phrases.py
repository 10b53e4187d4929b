"""Sizes in words, for what problems say of themselves."""

from collections.abc import Sequence

from wpk.extent import Extent
from wpk.problems.signs import TIMES


def sentence(*parts: str) -> str:
    """The parts that are there, apart."""
    return " ".join(filter(None, parts))


def batch_words(extent: Extent) -> str:
    """``batch 8`` or ``any batch``; empty for a batch of one."""
    if extent == Extent(1):
        return ""
    size = extent_words(extent)
    return "any batch" if size == "batch" else f"batch {size}"


def times_words(outer: Extent, heads: int) -> str:
    """How many products there are: ``8×12 of``; empty for one."""
    sizes = (extent_words(each) for each in (outer, Extent(heads)) if each != Extent(1))
    count = TIMES.join(sizes)
    return f"{count} of " if count else ""


def extent_words(extent: Extent) -> str:
    """A size, or the name of what decides it."""
    if extent.free is None:
        return str(extent.value)
    names = TIMES.join(extent.names)
    return names if extent.factor == 1 else f"{extent.factor}{names}"


def area(height: int, width: int) -> str:
    """``56²``, or both sizes of what is no square."""
    return f"{height}²" if height == width else by((height, width))


def by(sizes: Sequence[int]) -> str:
    """Sizes in a row: ``3×3``."""
    return TIMES.join(map(str, sizes))


def step_words(steps: tuple[int, int]) -> str:
    """One number for both axes where they are alike."""
    return str(steps[0]) if steps[0] == steps[1] else by(steps)
