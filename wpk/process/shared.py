"""Memory that a process and its child both see: how tensors get from one to the other.

It is a file without a name, which the system frees as soon as neither holds it, however they end. Its
segments are used again and again: pages that are there, and that the child has pinned, cost nothing.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wpk.execution import Bytes

_LEAST_BYTES = 1 << 16
"""Of a segment; a multiple of the size of a page."""

_STEPS = 8
"""Sizes of segments between a power of two and the next: of large ones an eighth is unused at most."""


class Segment(NamedTuple):
    """A part of the memory: where it begins, and how many bytes it has."""

    offset: int
    size: int


@dataclass(frozen=True)
class Loan:
    """An array in a segment, which the child finds by the segment."""

    segment: Segment
    array: Bytes


class SharedMemory:
    """The parent's side: hands out segments.

    Attributes:
        descriptor: Of the file, for the child.
    """

    def __init__(self) -> None:
        """Begin with no bytes."""
        self._file = os.fdopen(os.memfd_create("wpk"), "r+b", buffering=0)
        self.descriptor = self._file.fileno()
        self._bytes = 0
        self._unused: list[tuple[Segment, mmap.mmap]] = []

    def close(self) -> None:
        """Let go of all that nobody has an array in."""
        self._file.close()
        self._unused.clear()

    def lend(self, size: int) -> Loan:
        """An array of bytes with undefined contents.

        Its segment is used again when the array is gone, and all views of it.
        """
        wanted = _segment_size(size)
        fits = [each for each in self._unused if wanted <= each[0].size <= 2 * wanted]
        if fits:
            entry = min(fits, key=lambda each: each[0].size)
            self._unused.remove(entry)
        else:
            entry = self._map(wanted)
        array: Bytes = np.frombuffer(entry[1], np.uint8, size)
        weakref.finalize(array, self._take_back, entry)
        return Loan(entry[0], array)

    def _take_back(self, entry: tuple[Segment, mmap.mmap]) -> None:
        if not self._file.closed:
            self._unused.append(entry)

    def _map(self, size: int) -> tuple[Segment, mmap.mmap]:
        segment = Segment(self._bytes, size)
        self._file.truncate(self._bytes + size)
        self._bytes += size
        return segment, mmap.mmap(self.descriptor, size, offset=segment.offset)


class SharedSegments:
    """The child's side: finds segments."""

    def __init__(self, descriptor: int, pin: Callable[[Bytes], object]) -> None:
        """Begin with none.

        Args:
            descriptor: Of the parent's `SharedMemory`.
            pin: Called once for each segment, with all of its bytes.
        """
        self._descriptor, self._pin = descriptor, pin
        self._known: dict[Segment, Bytes] = {}

    def array(self, segment: Segment, size: int) -> Bytes:
        """The first bytes of a segment."""
        if segment not in self._known:
            mapped = mmap.mmap(self._descriptor, segment.size, offset=segment.offset)
            self._known[segment] = np.frombuffer(mapped, np.uint8)
            self._pin(self._known[segment])
        return self._known[segment][:size]


def _segment_size(size: int) -> int:
    step = max(_LEAST_BYTES, (1 << max(size - 1, 0).bit_length()) // (2 * _STEPS))
    return max(1, -(-size // step)) * step
