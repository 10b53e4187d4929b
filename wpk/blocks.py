"""Work on large arrays on all cores, each with parts of its own; what a block needs stays in a core's cache."""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from wpk.reused_memory import keep_freed

BLOCK = 1 << 16
"""Elements of a block: a few operands of 8 bytes each fit into a core's own cache."""

PART = 1 << 18
"""Elements of a part of an operator's work: they and what is computed on the way are memory that a core uses again and again,
while a large array's is fresh each time, and the system fills each of its pages with zeros."""

_LEAST_BLOCKS, _MOST_WORKERS = 16, 8
"""Blocks that pay for a thread, and threads that already use all of a machine's memory bandwidth."""

Block = tuple[slice, ...]
"""Where neighbours lie in an array: a slice for each of its first axes, or for all."""

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
_HERE = threading.local()


def cores() -> int:
    """How many cores there are for parts of the caller's work; one where it is such a part itself."""
    return 1 if getattr(_HERE, "is_part", False) else len(os.sched_getaffinity(0))


def on_cores(parts: Iterable[_Part], work: Callable[[_Part], _Result]) -> list[_Result]:
    """What ``work`` gives for every part, in order.

    Args:
        parts: Several for each core where they take different times; as they come, parts are begun in order.
        work: Called for a part on each core at once. NumPy's matrix products within take that core alone, and so does
            what would be spread over cores elsewhere.
    """
    waiting = list(parts)
    workers = min(len(waiting), cores())
    if workers < 2:
        return [work(part) for part in waiting]
    keep_freed()
    with _one_core_products(), ThreadPoolExecutor(workers, initializer=_begin_part) as pool:
        return list(pool.map(work, waiting))


def by_blocks(count: int, work: Callable[[slice], _Result]) -> list[_Result]:
    """What ``work`` gives for every block of ``count`` elements, in order.

    Args:
        count: Elements.
        work: Called for several blocks at once, each with its place; NumPy lets other threads run
            while it computes.
    """
    blocks = [slice(at, min(at + BLOCK, count)) for at in range(0, count, BLOCK)]
    workers = min(_MOST_WORKERS, cores(), len(blocks) // _LEAST_BLOCKS)
    if workers < 2:
        return [work(block) for block in blocks]

    def some(share: slice) -> list[_Result]:
        return [work(block) for block in blocks[share]]

    with ThreadPoolExecutor(workers, initializer=_begin_part) as pool:
        shares = pool.map(some, evenly(len(blocks), workers))
        return [result for results in shares for result in results]


def evenly(count: int, parts: int) -> list[slice]:
    """So many neighbouring parts of a count, none of which is more than one longer than another."""
    edges = [count * place // parts for place in range(parts + 1)]
    return [slice(*ends) for ends in pairwise(edges)]


def neighbours(shape: Sequence[int], most: int) -> list[Block]:
    """Blocks of at most so many neighbours each, which are all of an array, in order.

    Args:
        shape: The first axes of the array, or all.
        most: At least 1.
    """
    if not shape or not prod(shape):
        return [] if shape else [()]
    inner, axis = 1, len(shape) - 1
    while axis > 0 and inner * shape[axis] <= most:
        inner *= shape[axis]
        axis -= 1
    step = max(1, most // inner)
    behind = tuple(slice(0, n) for n in shape[axis + 1 :])
    return [
        (*(slice(i, i + 1) for i in before), slice(at, min(at + step, shape[axis])), *behind)
        for before in np.ndindex(*shape[:axis])
        for at in range(0, shape[axis], step)
    ]


def parts_of_rows(shape: Sequence[int], width: int, together: int = 1) -> list[Block]:
    """Parts of rows, a few for each core where they are much: one where they are little.

    Args:
        shape: The rows: the first axes of an array.
        width: Elements that a row takes.
        together: Rows of a part, however wide they are, where there are enough for all cores.
    """
    rows = prod(shape)
    if rows * width < 2 * PART:
        return neighbours(shape, max(1, rows))
    most = max(PART // max(1, width), together)
    return neighbours(shape, max(1, min(most, rows // (2 * cores()))))


def put(target: NDArray[np.generic], source: NDArray[np.generic]) -> None:
    """Copy elements, whose order in memory may be another, on all cores.

    Args:
        target: Where they go, converted to its type.
        source: Of the same shape.
    """
    axis = next((place for place, extent in enumerate(target.shape) if extent > 1), None)
    if axis is None or target.size < _LEAST_BLOCKS * BLOCK:
        target[...] = source
        return

    def work(part: slice) -> None:
        at = (slice(None),) * axis + (part,)
        target[at] = source[at]

    extent = target.shape[axis]
    on_cores(evenly(extent, min(extent, _MOST_WORKERS)), work)


def _begin_part() -> None:
    _HERE.is_part = True


class _OneCoreProducts:
    """Matrix products of one core each as long as any thread is within, then of as many as before.

    A product on all cores in each part would be as many threads as the square of the cores. The number is
    the process's, so that of two threads that are within at once only the last to leave may restore it.
    """

    def __init__(self) -> None:
        self._lock, self._within = threading.Lock(), 0
        self._controller = ThreadpoolController()

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._limited = self._controller.limit(limits=1, user_api="blas")
            self._within += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._limited.restore_original_limits()


@cache
def _one_core_products() -> _OneCoreProducts:
    return _OneCoreProducts()
