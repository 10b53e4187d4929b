"""Copies that take their time, so that whoever does not wait for one is seen; also as a graph with branches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from support.launches import launch_kernels
from wpk.execution import BoundLaunch, Device, KernelImage, Pointer
from wpk.launch import EARLY_LAUNCH

WORD = 4
_THREADS = 128
_TEXT = Path(__file__).with_suffix(".cu").read_text(encoding="utf-8")

PREDECESSORS: tuple[tuple[int, ...], ...] = ((), (0,), (0,), (1,), (2,), (3, 4), (5,), (6,))
"""Of each piece of a `Diamond`'s work."""


def image() -> KernelImage:
    """The kernel."""
    return launch_kernels.image("slow_copy", _TEXT)


def slow_copy(source: int, target: int, size: int) -> BoundLaunch:
    """A slow copy of so many bytes, launched early; `image` is loaded."""
    words = size // WORD
    shape = ((-(-words // _THREADS), 1, 1), (_THREADS, 1, 1), (1, 1, 1))
    arguments = (Pointer(source), words, Pointer(target))
    return BoundLaunch(image().digest, "slow_copy", *shape, 0, arguments, (EARLY_LAUNCH,))


@dataclass(frozen=True)
class Diamond:
    """Copies in two branches that meet, and memory of one that is used again behind that.

    Attributes:
        start: Address that all begins with.
        results: Addresses of what must equal it in the end.
        words: Of each.
        works: In an order that is right; `PREDECESSORS` are theirs.
    """

    start: int
    results: tuple[int, int, int]
    words: int
    works: tuple[BoundLaunch, ...]

    def set(self, device: Device, seed: int) -> NDArray[np.int32]:
        """Give the start other words."""
        words = np.random.default_rng(seed).integers(1, 2**30, self.words, np.int32)
        device.write(self.start, words.view(np.uint8))
        return words

    def right(self, device: Device, words: NDArray[np.int32]) -> bool:
        """Whether all results equal the start."""
        size = words.nbytes
        return all(
            np.array_equal(device.read(at, size).view(np.int32), words) for at in self.results
        )


def diamond(device: Device, words: int) -> Diamond:
    """One on a device."""
    device.load(image())
    size = words * WORD
    start, root, left, right, again = (device.allocate(size) for _ in range(5))
    joined, out = device.allocate(2 * size), device.allocate(2 * size)
    for address, many in ((root, 1), (left, 1), (right, 1), (again, 1), (joined, 2), (out, 2)):
        device.write(address, np.zeros(many * size, np.uint8))
    works = (
        slow_copy(start, root, size),
        slow_copy(root, left, size),
        slow_copy(root, right, size),
        slow_copy(left, joined, size),
        slow_copy(right, joined + size, size),
        slow_copy(joined, out, 2 * size),
        slow_copy(out, left, size),
        slow_copy(left, again, size),
    )
    return Diamond(start, (out, out + size, again), words, works)
