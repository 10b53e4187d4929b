"""Measure a row in a process of its own: whatever it does costs that row alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from multiprocessing.connection import Connection

from rows.base import MOST_SECONDS, Context, Outcome, Row, RowError
from wpk.errors import WpkError

GRACE_SECONDS = 15.0
"""For a row to notice by itself that its time is over."""


def measure_apart(row: Row, context: Context, grace: float = GRACE_SECONDS) -> Outcome:
    """What the row measures.

    Raises:
        RowError: It says so, fails, dies, or runs past its deadline; its processes are ended then.
    """
    # Not forked: a child must not inherit a parent's GPU, and the parent never opens one.
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_measure, args=(row, context, theirs), name=row.name)
    process.start()
    theirs.close()
    try:
        if not ours.poll(context.deadline + grace - time.monotonic()):
            raise RowError(f"took longer than {MOST_SECONDS:.0f} s")
        answer: Outcome | str = ours.recv()
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


def _measure(row: Row, context: Context, answer: Connection) -> None:
    os.setsid()  # its commands end with it
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
