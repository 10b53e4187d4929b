"""What the pool and its workers tell each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wpk.build.compiled import CompiledKernel
from wpk.errors import WpkError
from wpk.kernel_source import KernelSource


@dataclass(frozen=True)
class Task:
    """One compile that a worker is asked for.

    Attributes:
        source: The kernel.
        arch: What to build for.
        library: The NVRTC library to use.
        limit_seconds: After this long the pool kills the worker.
    """

    source: KernelSource
    arch: str
    library: Path
    limit_seconds: float


@dataclass(frozen=True)
class Answer:
    """A worker's answer: exactly one of ``kernel`` and ``error`` is set."""

    kernel: CompiledKernel | None
    error: WpkError | None
    seconds: float
