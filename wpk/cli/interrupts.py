"""Ctrl-C ends the command soon, wherever it arrives.

Python raises `KeyboardInterrupt` between any two steps of the main thread, also where it does harm:

1. In an import it can leave a lock of the import system taken, for which threads then wait for ever, or
   abort the process in an extension that is being imported. Where a thread is started it can leave one that
   nobody tells to end. Here it is raised behind such steps.
2. In a destructor or another callback it is printed and lost. Here it is raised again.
3. Leaving a command waits for its threads, which may be in a library that computes for long. A while after
   the interrupt the process ends without them.
4. What fails while a command is left because of it takes its place. `is_interrupt` still knows it.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
"""Exit code: 128 + SIGINT, as shells report it."""

GRACE_SECONDS = 5.0
"""Time for ending processes and keeping what was measured, which takes less than a second."""

_RETRY_SECONDS = 0.001
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_UNDIVIDED = {
    function.__code__
    for function in (
        ThreadPoolExecutor.submit,
        threading.Condition.__enter__,
        threading.Condition.__exit__,
        threading.Event.set,
        threading.Thread.start,
    )
}
"""Functions that take no time, but leave a thread or a lock behind when they are interrupted."""


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


def is_interrupt(error: BaseException | None) -> bool:
    """Tell whether an error is an interrupt, or came up while an interrupt was on its way."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    if _must_wait(frame):
        _retry()
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would interrupt the cleaning up
    raise KeyboardInterrupt


def _must_wait(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM or frame.f_code in _UNDIVIDED:
            return True
        frame = frame.f_back
    return False


def _raise_again(lost: "UnraisableHookArgs") -> None:
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _retry()
    else:
        sys.__unraisablehook__(lost)


def _retry() -> None:
    """Have `_interrupt` called again in a moment."""
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
