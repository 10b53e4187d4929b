"""Progress on stderr: what is done, of how much, and when it will be over."""

import logging
import sys
import time
from typing import TextIO

from wpk.progress import Progress, silent
from wpk.report.blocks import columns_of
from wpk.report.text import visible

_LOG = logging.getLogger(__name__)

LOG_SECONDS = 30.0
"""A log, which cannot rewrite a line, gets at most one line in this time within a stage."""


class ProgressLine:
    """Prints the progress of one stage after another.

    A terminal gets one line that is rewritten; anything else gets a line when a stage begins and
    ends, and now and then between, so that logs stay short.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        """Print to ``stream``, stderr by default; where it is quiet, notes only."""
        self._stream = sys.stderr if stream is None else stream
        self._quiet = quiet
        self._terminal = self._stream.isatty()
        self._stage = ""
        self._begun = self._told = 0.0
        self._open = False

    def __call__(self, stage: str, done: int, total: int, left: float | None = None) -> None:
        """Note that ``done`` of ``total`` parts are finished, and the rest takes ``left`` seconds.

        Where nobody knows, what is left is estimated from the time of the parts that are finished.
        """
        now = time.monotonic()
        fresh = stage != self._stage
        if fresh or done == total:
            _LOG.debug("%s: %d/%d", stage, done, total)
        if self._quiet:
            self._stage = stage
            return
        if fresh:
            self._stage, self._begun = stage, now
        elif done < total and not self._terminal and now - self._told < LOG_SECONDS:
            return
        self._told = now
        text = f"{visible(stage)}: {done}/{total}"
        if left is None and 0 < done < total:
            left = (now - self._begun) * (total - done) / done
        if done < total and left is not None:
            text += f", {duration(left)} left"
        elif done == total and total and not fresh:
            text += f" in {now - self._begun:.1f} s"
        self._write(text, last=done >= total)

    def note(self, line: str) -> None:
        """Print a line of its own."""
        end = "\n" if self._open else ""
        self._stream.write(f"{end}{visible(line)}\n")
        self._open = False
        self._stream.flush()

    def _write(self, text: str, *, last: bool) -> None:
        if self._terminal:
            self._open = not last
            width = columns_of(self._stream)
            line = (
                text if len(text) < width else f"{text[: width - 2]}…"
            )  # else it cannot be rewritten
            self._stream.write(f"\r\x1b[K{line}{'' if self._open else chr(10)}")
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()


def shown(progress: Progress | None) -> Progress:
    """The progress that was asked for; by default a `ProgressLine` where stderr is a terminal."""
    if progress is not None:
        return progress
    stream = sys.stderr
    return ProgressLine(stream) if stream is not None and stream.isatty() else silent


def duration(seconds: float) -> str:
    """Return a time in words: ``45 s``, ``12 min``, ``2.5 h``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
