"""Progress on stderr: what is done, of how much, and when it will be over."""

import sys
import time
from typing import TextIO


class Progress:
    """Prints the progress of one stage after another.

    A terminal gets one line that is rewritten; anything else gets a line when a stage begins and
    ends, so that logs stay short.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        """Print to ``stream``, stderr by default."""
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._stage = ""
        self._begun = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` parts of a stage are finished."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._begun = stage, now
        if not self._terminal and 0 < done < total:
            return
        elapsed = now - self._begun
        text = f"{stage}: {done}/{total}"
        if 0 < done < total:
            text += f", {elapsed * (total - done) / done:.0f} s left"
        elif done == total and total:
            text += f" in {elapsed:.1f} s"
        if self._terminal:
            end = "\n" if done == total else ""
            self._stream.write(f"\r\x1b[K{text}{end}")
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()
