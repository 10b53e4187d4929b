"""What long work tells whoever waits for it."""

from typing import Protocol


class Progress(Protocol):
    """Told of stages, one after another."""

    def __call__(self, stage: str, done: int, total: int, left: float | None = None) -> None:
        """Note how far a stage is.

        Args:
            stage: What is being done, in words.
            done: Parts of it that are finished.
            total: All its parts.
            left: Seconds until its end, where the work knows better than by counting parts.
        """


def silent(stage: str, done: int, total: int, left: float | None = None) -> None:
    """Progress that nobody reads."""
