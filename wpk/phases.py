"""How long each phase of long work took, by what the work tells of its progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wpk.progress import Progress, silent

BEGINNING = "beginning"
"""The phase before the first stage is told."""


class Phases:
    """The progress of work that is also timed: what passes between two stages belongs to the first of them.

    One thread tells it; work beside that (`wpk.beside`) has no phases, since nobody waits for it.
    """

    def __init__(
        self, progress: Progress = silent, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin.

        Args:
            progress: Told of every stage, too.
            clock: Seconds that only go forward.
        """
        self._progress, self._clock = progress, clock
        self._stage, self._since = BEGINNING, clock()
        self.begun = self._since
        self._seconds: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int, left: float | None = None) -> None:
        """Note how far a stage is (`wpk.progress.Progress`)."""
        if stage != self._stage:
            self._turn(stage)
        self._progress(stage, done, total, left)

    @contextmanager
    def within(self, phase: str) -> Iterator[None]:
        """Count the block as a phase of its own; the stage that it lies in goes on behind it."""
        stage = self._stage
        self._turn(phase)
        try:
            yield
        finally:
            self._turn(stage)

    def seconds(self) -> dict[str, float]:
        """What each phase took so far, in the order in which they began."""
        self._turn(self._stage)
        return dict(self._seconds)

    def _turn(self, stage: str) -> None:
        now = self._clock()
        self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now
