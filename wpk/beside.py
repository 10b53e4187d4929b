"""Work that goes on beside other work, in a thread of its own: NumPy and ONNX Runtime leave the interpreter to others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, Self, TypeVar

from wpk.progress import Progress

_Result = TypeVar("_Result")
_Piece = TypeVar("_Piece")


class Beside:
    """One thread, which does what it is given in that order.

    Use it as a context manager: on leaving, what has not begun is dropped, and what has begun is given up at the next
    thing that it tells of its progress.
    """

    def __init__(self, name: str) -> None:
        """Begin with nothing to do; threads are called ``wpk-NAME``."""
        self._thread = ThreadPoolExecutor(1, f"wpk-{name}")
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Wait for the end of what is given up."""
        self._is_over.set()
        self._thread.shutdown(cancel_futures=True)

    def submit(self, work: Callable[[Progress], _Result]) -> Future[_Result]:
        """Have work done after all that was submitted before.

        Args:
            work: Given the progress to tell: nobody reads it, and it ends the work where that is given up.
        """
        return self._thread.submit(work, self._told)

    def _told(self, stage: str, done: int, total: int, left: float | None = None) -> None:
        """Go on, or end.

        Raises:
            CancelledError: The block was left.
        """
        del stage, done, total, left
        if self._is_over.is_set():
            raise CancelledError


def awaited(work: Future[_Result], stage: str, tell: Progress) -> _Result:
    """Return the outcome of work; where it is not there yet, tell what is waited for."""
    if not work.done():
        tell(stage, 0, 1)
    return work.result()


class Handover(Generic[_Piece]):
    """What one thread hands to another piece by piece, as it makes them.

    Use it as a context manager around the making. The other thread iterates over it, and waits for the next piece; it
    ends with the block, by an error where that ends by one.
    """

    def __init__(self) -> None:
        """Begin with nothing handed over."""
        self._pieces: SimpleQueue[_Piece | _End] = SimpleQueue()

    def __enter__(self) -> Callable[[_Piece], None]:
        """What hands a piece over."""
        return self._pieces.put

    def __exit__(self, error: object, *_rest: object) -> None:
        """End the other side."""
        self._pieces.put(_End(is_broken=error is not None))

    def __iter__(self) -> Iterator[_Piece]:
        """The pieces, for one thread and once.

        Raises:
            CancelledError: The block ended by an error.
        """
        while not isinstance(piece := self._pieces.get(), _End):
            yield piece
        if piece.is_broken:
            raise CancelledError


@dataclass(frozen=True)
class _End:
    """Nothing comes behind it."""

    is_broken: bool
