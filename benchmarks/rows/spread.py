"""Spread rows over the GPUs of a machine: one row a GPU at a time, with its part of the CPUs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

Job = TypeVar("Job")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Seat:
    """Where a row is measured.

    Attributes:
        gpu: The only GPU that it sees; None for those that this process sees.
        cpus: The cores that it may use.
    """

    gpu: int | None
    cpus: frozenset[int]


def seats(gpus: Sequence[int]) -> list[Seat]:
    """One a GPU, each with an equal part of the cores that this process may use."""
    cores = sorted(os.sched_getaffinity(0))
    if not gpus:
        return [Seat(None, frozenset(cores))]
    part = max(1, len(cores) // len(gpus))
    begins = [place * part % len(cores) for place in range(len(gpus))]
    return [
        Seat(gpu, frozenset(cores[begin : begin + part]))
        for gpu, begin in zip(gpus, begins, strict=True)
    ]


def spread(
    jobs: Sequence[Job],
    places: Sequence[Seat],
    work: Callable[[Job, Seat], Done],
    stop: threading.Event,
) -> Iterator[tuple[Job, Done]]:
    """Work on the jobs in their order, one a seat at a time; give what is done as it comes.

    ``stop`` is set when nobody reads on: jobs that have not begun never do, and ``work`` ends early.
    """
    free: SimpleQueue[Seat] = SimpleQueue()
    for seat in places:
        free.put(seat)

    def run(job: Job) -> Done:
        seat = free.get()
        try:
            return work(job, seat)
        finally:
            free.put(seat)

    with ThreadPoolExecutor(len(places), "row") as pool:
        futures = {pool.submit(run, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
