"""Compile many kernels in parallel, in processes that a time limit can kill.

A compile that hangs or crashes costs one kernel: its process is ended and replaced.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import Self

from wpk.build.cache import KernelCache
from wpk.build.compiled import CompiledKernel
from wpk.build.nvrtc import load_nvrtc, options
from wpk.build.task import Answer, Task
from wpk.build.worker_process import WorkerProcess
from wpk.errors import CompileError, WpkError
from wpk.kernel_source import KernelSource
from wpk.trial import Status

Progress = Callable[[int, int], None]
"""Called with how many kernels are done and how many there are."""


@dataclass(frozen=True)
class Compilation:
    """How the compile of one kernel ended; ``kernel`` is set exactly when the status is ok.

    Attributes:
        source: What was compiled.
        status: ok, compile_failed or timed_out.
        kernel: The machine code.
        error: Why there is none.
        seconds: What the compile took; 0 where it came from the cache.
        cached: Whether it came from the cache.
    """

    source: KernelSource
    status: Status
    kernel: CompiledKernel | None
    error: WpkError | None
    seconds: float
    cached: bool


class CompilePool:
    """Compiles for one architecture; starts processes as they are needed and keeps them.

    Use it as a context manager: leaving it, also by Ctrl-C, ends every process.
    """

    def __init__(
        self,
        arch: str,
        *,
        cache: KernelCache | None = None,
        workers: int | None = None,
        limit_seconds: float = 60.0,
        library: Path | None = None,
    ) -> None:
        """Describe the pool; nothing is started yet.

        Args:
            arch: What to build for, e.g. ``sm_90a``.
            cache: Where kernels are looked up and kept; None is the user's cache folder.
            workers: Processes at most; None is one a core that this process may use.
            limit_seconds: A compile that takes longer is ended.
            library: The NVRTC library; None finds one.

        Raises:
            CompileError: there is no NVRTC.
        """
        self._arch = arch
        self._cache = KernelCache() if cache is None else cache
        self._limit_seconds = limit_seconds
        self._nvrtc = load_nvrtc(library)
        self._count = len(os.sched_getaffinity(0)) if workers is None else max(1, workers)
        self._idle: list[WorkerProcess] = []
        self._busy: list[WorkerProcess] = []

    def __enter__(self) -> Self:
        """Nothing to do: processes start as they are needed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End every process."""
        self.close()

    def compile(
        self, sources: Iterable[KernelSource], progress: Progress | None = None
    ) -> Iterator[Compilation]:
        """Yield the outcome of every distinct source, in order of completion.

        Stopping early is allowed: what is not yet compiled then is not compiled.

        Raises:
            CompileError: the cache cannot be read or written.
        """
        distinct = list(dict.fromkeys(sources))
        done = 0
        try:
            for outcome in self._outcomes(distinct):
                done += 1
                if progress is not None:
                    progress(done, len(distinct))
                yield outcome
        finally:
            self._end(self._busy)

    def close(self) -> None:
        """End every process; the pool can be used again."""
        self._end(self._busy)
        self._end(self._idle)

    def _outcomes(self, sources: list[KernelSource]) -> Iterator[Compilation]:
        pending: deque[KernelSource] = deque()
        for source in sources:
            kernel = self._cache.load(self._key(source))
            if kernel is None:
                pending.append(source)
            else:
                yield Compilation(source, Status.OK, kernel, None, 0.0, cached=True)
        while pending or self._busy:
            while pending and len(self._busy) < self._count:
                self._start(pending.popleft())
            for worker in self._ready():
                self._busy.remove(worker)
                yield self._collect(worker)

    def _key(self, source: KernelSource) -> str:
        return self._cache.key(source, self._nvrtc.identity, options(self._arch))

    def _start(self, source: KernelSource) -> None:
        worker = self._idle.pop() if self._idle else WorkerProcess()
        if not worker.is_alive():
            worker.end()
            worker = WorkerProcess()
        self._busy.append(worker)
        worker.send(Task(source, self._arch, self._nvrtc.path, self._limit_seconds))

    def _ready(self) -> list[WorkerProcess]:
        """Wait until a worker has answered, has died, or is out of time."""
        now = time.monotonic()
        patience = min(worker.deadline for worker in self._busy) - now
        answered = wait([worker.connection for worker in self._busy], max(0.0, patience))
        now = time.monotonic()
        return [w for w in self._busy if w.connection in answered or w.deadline <= now]

    def _collect(self, worker: WorkerProcess) -> Compilation:
        source = worker.task.source
        answer = worker.receive()
        if answer is None:
            return self._lost(worker, source)
        self._idle.append(worker)
        if answer.kernel is None:
            return _failure(source, answer)
        self._cache.store(self._key(source), source, answer.kernel)
        return Compilation(source, Status.OK, answer.kernel, None, answer.seconds, cached=False)

    def _lost(self, worker: WorkerProcess, source: KernelSource) -> Compilation:
        """Report the compile of a worker that hangs or died; the worker is ended."""
        timed_out = worker.is_alive()
        status = Status.TIMED_OUT if timed_out else Status.COMPILE_FAILED
        how = worker.end()
        happened = (
            f"took longer than {self._limit_seconds:g} s" if timed_out else f"crashed ({how})"
        )
        error = CompileError(
            f"the compile of {source.entry} for {self._arch} {happened}",
            fix="another schedule avoids it; the unit is " + repr(source.text[:120]),
        )
        return Compilation(source, status, None, error, worker.elapsed(), cached=False)

    @staticmethod
    def _end(workers: list[WorkerProcess]) -> None:
        while workers:
            workers.pop().end()


def _failure(source: KernelSource, answer: Answer) -> Compilation:
    return Compilation(
        source, Status.COMPILE_FAILED, None, answer.error, answer.seconds, cached=False
    )
