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
from typing import Self

from wpk.build.cache import KernelCache
from wpk.build.compiled import CompiledKernel
from wpk.build.nvrtc import load_nvrtc, options
from wpk.errors import CompileError, WpkError
from wpk.kernel_source import KernelSource
from wpk.process import ChildLostError, ChildProcess, ChildTimeoutError
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

    Any thread may submit; one opens and closes it. Use it as a context manager: leaving it, also by Ctrl-C, ends every
    process.
    """

    def __init__(
        self,
        arch: str,
        *,
        cache: KernelCache | None = None,
        workers: int | None = None,
        limit_seconds: float = 60.0,
    ) -> None:
        """Describe the pool; nothing is started yet.

        Args:
            arch: What to build for, e.g. ``sm_90a``.
            cache: Where kernels are looked up and kept; None is the user's cache folder.
            workers: Processes at most; None is one a core that this process may use.
            limit_seconds: A compile that takes longer is ended.

        Raises:
            CompileError: there is no NVRTC.
        """
        self._arch = arch
        self._cache = KernelCache() if cache is None else cache
        self._limit_seconds = limit_seconds
        self._nvrtc = load_nvrtc()
        self._count = len(os.sched_getaffinity(0)) if workers is None else max(1, workers)
        self._lock = threading.Lock()  # of what follows
        self._threads: ThreadPoolExecutor | None = None
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._closing = False
        self._told = False

    def __enter__(self) -> Self:
        """Nothing to do: processes start as they are needed."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End every process."""
        self.close()

    def compile(
        self, sources: Iterable[KernelSource], progress: Progress | None = None
    ) -> Iterator[Compilation]:
        """Yield the outcome of every distinct source, in order of completion.

        Each begins to compile when it comes, and the first outcome is yielded when all have come.
        Stopping early is allowed: what is not yet compiled then is not compiled.
        """
        submitted: dict[KernelSource, Future[Compilation]] = {}
        try:
            for source in sources:
                if source not in submitted:
                    submitted[source] = self.submit(source)
            futures = list(submitted.values())
            for done, future in enumerate(as_completed(futures), start=1):
                if progress is not None:
                    progress(done, len(futures))
                yield future.result()
        finally:
            for future in submitted.values():
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
        start = time.monotonic()
        status, error = Status.COMPILE_FAILED, None
        try:
            with self._worker() as worker:
                kernel = worker.ask(
                    "compile",
                    source,
                    self._arch,
                    self._nvrtc.path,
                    answer=CompiledKernel,
                    limit_seconds=self._limit_seconds,
                )
        except CompileError as refusal:
            error = refusal
        except ChildTimeoutError:
            status = Status.TIMED_OUT
            error = self._loss(source, f"took longer than {self._limit_seconds:g} s")
        except ChildLostError as lost:
            error = self._loss(source, f"crashed ({_how(lost.status)})")
        seconds = time.monotonic() - start
        if kernel is None:
            return Compilation(source, status, None, error, seconds, cached=False)
        self._keep(key, source, kernel)
        return Compilation(source, Status.OK, kernel, None, seconds, cached=False)

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
    def _worker(self) -> Iterator[ChildProcess]:
        """A process that nobody else uses meanwhile; none is begun once the pool is closing."""
        with self._lock:
            if self._closing:
                raise CancelledError
            worker = self._idle.pop() if self._idle else _start_worker()
            if not worker.is_alive:
                worker.end()
                worker = _start_worker()
            self._busy.add(worker)
        try:
            yield worker
        finally:
            with self._lock:
                self._busy.remove(worker)
                if worker.is_alive:
                    self._idle.append(worker)

    def _loss(self, source: KernelSource, what: str) -> CompileError:
        """Why a worker that hangs or died compiled nothing.

        Raises:
            CancelledError: The pool ended it.
        """
        if self._closing:
            raise CancelledError
        return CompileError(
            f"the compile of {source.entry} for {self._arch} {what}",
            fix="another schedule avoids it; the unit is " + repr(source.text[:120]),
        )


def _start_worker() -> ChildProcess:
    return ChildProcess("wpk.build.worker", errors=(CompileError,))


def _how(status: int | None) -> str:
    """How a process ended, in words."""
    if status is None:
        return "before it was asked"
    return f"signal {-status}" if status < 0 else f"exit code {status}"
