"""Compile many kernels in parallel, in processes that a time limit can kill.

A compile that hangs or crashes costs one kernel: its process is ended and replaced. A thread waits for
each process, so that whoever submits a kernel is free to do something else meanwhile.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
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

_log = logging.getLogger(__name__)

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

    Any thread may submit; one opens and closes it. Use it as a context manager: leaving it, also by Ctrl-C, ends every process.
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
        self._lock = threading.Lock()  # of what follows
        self._threads: ThreadPoolExecutor | None = None
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._closing = False
        self._told = False

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
        """
        futures = [self.submit(source) for source in dict.fromkeys(sources)]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                if progress is not None:
                    progress(done, len(futures))
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def submit(self, source: KernelSource) -> Future[Compilation]:
        """Have it compiled after all that was submitted before; it can be cancelled until it begins.

        The future raises:
            CancelledError: the pool was closed meanwhile.
        """
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._count, "wpk-compile")
            return self._threads.submit(self._compile, source)

    def close(self) -> None:
        """End every process and what was submitted; the pool can be used again."""
        with self._lock:
            threads, self._threads = self._threads, None
            self._closing = True
            for worker in self._busy:
                worker.kill()
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        while self._idle:
            self._idle.pop().end()
        self._closing = False

    def _compile(self, source: KernelSource) -> Compilation:
        key = self._cache.key(source, self._nvrtc.identity, options(self._arch))
        kernel = self._cache.load(key)
        if kernel is not None:
            return Compilation(source, Status.OK, kernel, None, 0.0, cached=True)
        with self._worker() as worker:
            start = time.monotonic()
            answer = worker.answer(Task(source, self._arch, self._nvrtc.path, self._limit_seconds))
            if answer is None:
                return self._lost(worker, source, time.monotonic() - start)
        if answer.kernel is None:
            return _failure(source, answer)
        self._keep(key, source, answer.kernel)
        return Compilation(source, Status.OK, answer.kernel, None, answer.seconds, cached=False)

    def _keep(self, key: str, source: KernelSource, kernel: CompiledKernel) -> None:
        """A cache that cannot be written costs the cache, and not what is compiled."""
        try:
            self._cache.store(key, source, kernel)
        except CompileError as error:
            with self._lock:
                told, self._told = self._told, True
            if not told:
                _log.warning(
                    "compiled kernels are not kept: %s. To keep them: %s", error.what, error.fix
                )

    @contextmanager
    def _worker(self) -> Iterator[WorkerProcess]:
        """A process that nobody else uses meanwhile; none is begun once the pool is closing."""
        with self._lock:
            if self._closing:
                raise CancelledError
            worker = self._idle.pop() if self._idle else WorkerProcess()
            if not worker.is_alive():
                worker.end()
                worker = WorkerProcess()
            self._busy.add(worker)
        try:
            yield worker
        finally:
            with self._lock:
                self._busy.remove(worker)
                if worker.is_alive():
                    self._idle.append(worker)

    def _lost(self, worker: WorkerProcess, source: KernelSource, seconds: float) -> Compilation:
        """Report the compile of a worker that hangs or died; the worker is ended."""
        if self._closing:
            raise CancelledError
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
        return Compilation(source, status, None, error, seconds, cached=False)


def _failure(source: KernelSource, answer: Answer) -> Compilation:
    return Compilation(
        source, Status.COMPILE_FAILED, None, answer.error, answer.seconds, cached=False
    )
