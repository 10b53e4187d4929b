"""Measure a row in a process of its own: whatever it does costs that row alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from multiprocessing.connection import Connection

from rows.base import MOST_SECONDS, Context, Outcome, Row, RowError
from rows.spread import Seat
from wpk.errors import WpkError

GRACE_SECONDS = 15.0
"""For a row to notice by itself that its time is over."""

_LOOK_SECONDS = 0.5


class StoppedError(Exception):
    """Somebody ended the script; the row is as if it had not begun."""


def measure_apart(
    row: Row, context: Context, seat: Seat, stop: threading.Event, grace: float = GRACE_SECONDS
) -> Outcome:
    """What the row measures.

    Args:
        row: What to measure.
        context: What it is given.
        seat: The GPU and the cores that it uses.
        stop: Set to end it.
        grace: Seconds after the deadline until it is ended.

    Raises:
        RowError: It says so, fails, dies, or runs past its deadline; its processes are ended then.
        StoppedError: It was stopped.
    """
    # Not forked: a child must not inherit a parent's GPU, and the parent never opens one.
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_measure, args=(row, context, seat, theirs), name=row.name)
    process.start()
    theirs.close()
    try:
        answer = _answer(ours, context.deadline + grace, stop)
    except EOFError as error:
        process.join()
        raise RowError(f"its process ended with exit code {process.exitcode}") from error
    finally:
        _end(process.pid)
        process.join()
        ours.close()
    if isinstance(answer, str):
        raise RowError(answer)
    return answer


def _answer(connection: Connection, until: float, stop: threading.Event) -> Outcome | str:
    """What the row says: an outcome, or why there is none."""
    while not connection.poll(_LOOK_SECONDS):
        if stop.is_set():
            raise StoppedError
        if time.monotonic() > until:
            raise RowError(f"took longer than {MOST_SECONDS:.0f} s")
    answer: Outcome | str = connection.recv()
    return answer


def _measure(row: Row, context: Context, seat: Seat, answer: Connection) -> None:
    os.setsid()  # its commands end with it, and Ctrl-C is the parent's to handle
    os.sched_setaffinity(0, seat.cpus)
    if seat.gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(seat.gpu)
    try:
        answer.send(row.measure(context))
    except (RowError, WpkError) as error:
        answer.send(str(error))
    except Exception as error:  # a mistake in one row must not cost the others
        traceback.print_exc()
        answer.send(f"{type(error).__name__}: {error}")


def _end(group: int | None) -> None:
    """Kill the row's process with all that it started, as far as they are still there."""
    if group is None:
        return
    for end in (os.killpg, os.kill):  # a process that has just begun has no group of its own yet
        try:
            end(group, signal.SIGKILL)
        except ProcessLookupError:
            continue
