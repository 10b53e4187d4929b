"""What a buffer may hold after a step, word by word: a quick test of every byte that a candidate leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wpk.blocks import by_blocks, put
from wpk.checks.compare import Floats
from wpk.checks.float64_nodes import Array
from wpk.checks.intervals import Words, accepted, ordered
from wpk.checks.region import OutputRegion
from wpk.execution import Bytes

Place = Callable[[Bytes], Array]
"""A view of elements in an image."""


@dataclass(frozen=True)
class WordRanges:
    """The patterns that the words of a buffer may hold.

    A word is as wide as an element of the output. One that holds an element may hold the patterns of
    the accepted numbers, one of its padding only zero, any other only what it held before.

    Attributes:
        first: The least pattern of each word: of floating point numbers in the order of
            `wpk.checks.intervals.ordered`, of integers as it is.
        span: How many more are allowed above it.
        floating: Whether the elements are floating point.
        rest: The bytes after the last whole word, which must stay.
    """

    first: Words
    span: NDArray[np.unsignedinteger]
    floating: bool
    rest: Bytes

    def holds(self, image: Bytes) -> bool:
        """Tell whether every word of the buffer is what it may be."""
        whole = image.size - self.rest.size
        words = image[:whole].view(self.first.dtype)

        def fits(block: slice) -> bool:
            above = ordered(words[block]) if self.floating else words[block].copy()
            above -= self.first[block]
            return not (above.view(self.span.dtype) > self.span[block]).any()

        return all(by_blocks(words.size, fits)) and same(image[whole:], self.rest)


def same(left: Bytes, right: Bytes) -> bool:
    """Tell whether the bytes are the same; of one size."""
    whole = left.size // 8 * 8
    one, other = left[:whole].view(np.uint64), right[:whole].view(np.uint64)
    equal = by_blocks(one.size, lambda block: bool((one[block] == other[block]).all()))
    return all(equal) and bool((left[whole:] == right[whole:]).all())


def allow(
    output: OutputRegion, place: Place, expected: Array, tolerance: Floats | None
) -> WordRanges | None:
    """Return what the buffer of a step's output may hold after it.

    Args:
        output: The output in its buffer as it is before.
        place: Where the elements lie in an image of the buffer.
        expected: What they should be, in that order.
        tolerance: Allowed absolute difference; None asks for equality.

    Returns:
        None where intervals cannot say it: nothing is accepted for an element, the elements are not
        what the step computes, or words lie across each other.
    """
    width, before = output.value.dtype.bytes, output.image
    found = accepted(expected, tolerance, output.value.dtype.numpy)
    if found is None or output.value.offset % width or not _is_domain(output, place):
        return None
    whole = before.size // width * width
    low, high = (_words(output, place, end)[:whole].view(f"i{width}") for end in found)
    floating = output.value.dtype.is_float or output.value.dtype.is_fp8
    first, span = low, high  # in their own memory

    def enclose(block: slice) -> None:
        if floating:
            first[block], span[block] = ordered(first[block]), ordered(span[block])
        span[block] -= first[block]

    by_blocks(first.size, enclose)
    return WordRanges(first, span.view(f"u{width}"), floating, before[whole:].copy())


def _words(output: OutputRegion, place: Place, elements: Array) -> Bytes:
    """Return the buffer with these elements, and zeros for padding."""
    image = np.empty_like(output.image)
    put(image, output.image)
    there = place(image)
    put(there, elements.reshape(there.shape))
    padding = replace(output, image=image).padding()
    if padding is not None:
        padding[...] = 0
    return image


def _is_domain(output: OutputRegion, place: Place) -> bool:
    """Tell whether the elements are all of what the step computes, and nothing else."""
    marked, domain = np.zeros_like(output.image), np.zeros_like(output.image)
    for elements in (place(marked), replace(output, image=domain).elements()):
        elements.view(f"u{elements.itemsize}")[...] = 1
    return same(marked, domain)
