"""A stand-in for the process that tries candidates: executes on the CPU, measures as it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wpk.candidate import Configuration
from wpk.device import MemoryRange, Patience, Timing
from wpk.emulator import EmulatorProcess
from wpk.errors import EngineError
from wpk.execution import BoundCall, LibraryImage, Work
from wpk.libraries import LibraryOffer, NumpyLibraries, find_library
from wpk.libraries.cudnn_problems import describe
from wpk.problems import Problem
from wpk.trial import Regime

Clock = Callable[[Sequence[Work], Sequence[MemoryRange]], tuple[float, ...]]


class DummyGpu(EmulatorProcess):
    """A GPU whose library computes every problem that cuDNN can be asked, by its definition.

    Attributes:
        engines: Implementations of a problem that its library offers.
        broken: Of these, the one that is never made ready.
        scratch: Bytes that each of them asks for.
        version: Of the library; empty where none is installed.
    """

    broken = -1
    scratch = 512
    version = "9.19.0"

    def __init__(self, clock: Clock, *, engines: int = 0, **options: Any) -> None:
        options = {"time_limit_seconds": 20.0, "threads": 1, **options}
        super().__init__(libraries=NumpyLibraries(), **options)
        self.clock, self.engines = clock, engines

    def measure(
        self,
        works: Sequence[Work],
        regions: Sequence[MemoryRange],
        regime: Regime,
        patience: Patience,
    ) -> Timing:
        del patience
        return Timing(self.clock(works, regions), regime)

    def step_seconds(self, steps: Sequence[Sequence[Work]]) -> tuple[float, ...]:
        return tuple(min(self.clock(works, ())) for works in steps)

    def offer(self, library: str, problem: Problem) -> LibraryOffer:
        reason = find_library(library).why_not(problem)
        if not self.version:
            reason = "cuDNN is not installed"
        if reason is not None:
            return LibraryOffer(library, self.version, (), (reason,))
        graph = len(describe(problem)) - 1
        configurations: list[Configuration] = [
            (("graph", graph), ("engine", engine)) for engine in range(self.engines)
        ]
        return LibraryOffer(library, self.version, tuple(configurations), ())

    def prepare(self, image: LibraryImage) -> int:
        if dict(image.configuration)["engine"] == self.broken:
            raise EngineError("this engine is not made ready", fix="choose another")
        self.load(image)
        return self.scratch


def is_library(work: Work) -> bool:
    """Whether work is a library's."""
    return isinstance(work, BoundCall)
