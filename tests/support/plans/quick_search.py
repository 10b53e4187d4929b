"""A search that compiles one schedule a problem: for tests that ask what a plan computes, not how fast."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

import pytest

from wpk.build import Compilation, CompiledKernel, CompilePool
from wpk.build.pool import Progress
from wpk.kernel_source import KernelSource
from wpk.search.models import model_search
from wpk.trial import Status

WAYS = ("from_model", "from_lock")
"""Modules of the pipeline that compile."""


def compile_one(patch: pytest.MonkeyPatch) -> None:
    """Let a search compile the schedule that the models like best, and others only if it fails."""
    patch.setattr(model_search, "FINALISTS", 1)


@pytest.fixture
def one_finalist(monkeypatch: pytest.MonkeyPatch) -> None:
    """`compile_one` for a test."""
    compile_one(monkeypatch)


@pytest.fixture
def one_cubin(monkeypatch: pytest.MonkeyPatch, one_finalist: None) -> None:
    """Plans whose kernels only the CPU has: for tests that are not the first to compile their templates."""
    for way in WAYS:
        monkeypatch.setattr(f"wpk.pipeline.{way}.CompilePool", OneForAll)


def every_cubin(patch: pytest.MonkeyPatch) -> None:
    """Take `one_cubin` back, where a test looks at machine code."""
    for way in WAYS:
        patch.setattr(f"wpk.pipeline.{way}.CompilePool", CompilePool)


class OneForAll(CompilePool):
    """Compiles the first kernel, and gives its machine code for every other one: a CPU executes none of it."""

    _first: ClassVar[dict[str, CompiledKernel]] = {}

    def compile(
        self, sources: Iterable[KernelSource], progress: Progress | None = None
    ) -> Iterator[Compilation]:
        """See `CompilePool.compile`."""
        del progress
        for source in dict.fromkeys(sources):
            if self._arch not in self._first:
                (compiled,) = super().compile([source])
                assert compiled.kernel is not None
                self._first[self._arch] = compiled.kernel
            kernel = replace(self._first[self._arch], digest=source.digest, entry=source.entry)
            yield Compilation(source, Status.OK, kernel, None, 0.0, cached=False)
