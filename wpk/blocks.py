"""Work on large arrays block by block: what a block needs stays in a core's cache, and all cores take part."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

BLOCK = 1 << 16
"""Elements of a block: a few operands of 8 bytes each fit into a core's own cache."""

_LEAST_BLOCKS, _MOST_WORKERS = 16, 8
"""Blocks that pay for a thread, and threads that already use all of a machine's memory bandwidth."""

_Result = TypeVar("_Result")


def by_blocks(count: int, work: Callable[[slice], _Result]) -> list[_Result]:
    """What ``work`` gives for every block of ``count`` elements, in order.

    Args:
        count: Elements.
        work: Called for several blocks at once, each with its place; NumPy lets other threads run
            while it computes.
    """
    blocks = [slice(at, min(at + BLOCK, count)) for at in range(0, count, BLOCK)]
    workers = min(_MOST_WORKERS, len(os.sched_getaffinity(0)), len(blocks) // _LEAST_BLOCKS)
    if workers < 2:
        return [work(block) for block in blocks]
    edges = [len(blocks) * place // workers for place in range(workers + 1)]

    def some(worker: int) -> list[_Result]:
        return [work(block) for block in blocks[edges[worker] : edges[worker + 1]]]

    with ThreadPoolExecutor(workers) as pool:
        return [result for results in pool.map(some, range(workers)) for result in results]
