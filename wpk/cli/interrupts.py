"""Ctrl-C ends the command soon, wherever it arrives.

Python raises `KeyboardInterrupt` between any two steps of the main thread, also where it does harm:

1. In an import it can leave a lock of the import system taken, for which threads then wait for ever, or
   abort the process in an extension that is being imported. Here it is raised when the import is over.
2. In a destructor or another callback it is printed and lost. Here it is raised again.
3. While a thread is started or locked, whoever waits for that thread at the end may wait for ever, as
   for a library that computes for long. A while after the interrupt the process ends without it.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
"""Exit code: 128 + SIGINT, as shells report it."""

GRACE_SECONDS = 5.0
"""For ending processes and keeping what was measured, which takes less than a second."""

_RETRY_SECONDS = 0.01
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


@contextmanager
def interrupts_end_the_process() -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the block where that is safe, once; see that the process ends then.

    For the main thread of a process that ends after the block: an interrupt behind it comes too late and
    is ignored. Where interrupts are ignored before, as in the background of a shell, they stay so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _watch()
    signal.signal(signal.SIGALRM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _raise_again
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = sys.__unraisablehook__


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    if _is_importing(frame):
        _retry()
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would interrupt the cleaning up
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != _IMPORT_SYSTEM:
        frame = frame.f_back
    return frame is not None


def _raise_again(lost: "UnraisableHookArgs") -> None:
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _retry()
    else:
        sys.__unraisablehook__(lost)


def _retry() -> None:
    """Have `_interrupt` called again, in a moment."""
    signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)


def _watch() -> None:
    """Have a thread told of signals, whatever the main thread is doing."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_end_late, args=(heard,), name="wpk-interrupts", daemon=True).start()


def _end_late(heard: int) -> None:
    os.read(heard, 1)
    time.sleep(GRACE_SECONDS)
    os._exit(INTERRUPTED)
