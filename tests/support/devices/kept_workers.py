"""Processes that compile, kept from test to test: an interpreter takes longer to start than most kernels to compile."""

from __future__ import annotations

from typing import Any

import pytest

from wpk.build import pool
from wpk.errors import CompileError
from wpk.process import ChildProcess


class KeptWorkers:
    """Starts workers of pools, and takes back those that a pool ends while they wait to be asked."""

    def __init__(self) -> None:
        self.spare: list[_KeptWorker] = []
        self.started = 0

    def start(self) -> ChildProcess:
        """A worker that nobody uses: one that was given back, else a new one."""
        while self.spare:
            worker = self.spare.pop()
            if worker.is_alive:
                return worker
            worker.end()
        self.started += 1
        return _KeptWorker(self)

    def end(self) -> None:
        """End those that were given back."""
        while self.spare:
            self.spare.pop().end_for_good()


class _KeptWorker(ChildProcess):
    """A process that outlives its pool, unless it hangs, has died or is at work."""

    def __init__(self, kept: KeptWorkers) -> None:
        super().__init__("wpk.build.worker", errors=(CompileError,))
        self._kept = kept
        self._is_at_work = False

    def _call(self, *request: Any) -> Any:
        self._is_at_work = True
        answer = super()._call(*request)
        self._is_at_work = False  # where it does not answer, it never is free again
        return answer

    def end(self) -> None:
        if self.is_alive and not self._is_at_work:
            self._kept.spare.append(self)
        else:
            self.end_for_good()

    def end_for_good(self) -> None:
        super().end()


_own = pool._start_worker


def own_workers(patch: pytest.MonkeyPatch) -> None:
    """Let pools start processes of their own, as they do outside of tests."""
    patch.setattr(pool, "_start_worker", _own)


def keep_workers(patch: pytest.MonkeyPatch) -> KeptWorkers:
    """Let every `CompilePool` of this process share workers, until the patch is undone and they are ended."""
    kept = KeptWorkers()
    patch.setattr(pool, "_start_worker", kept.start)
    return kept
