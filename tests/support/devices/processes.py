"""Processes that tests start and interrupt, and what they ask of processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


def children(process: int | None = None) -> set[int]:
    """Processes that some thread of this one, or of another, started and that still run."""
    try:
        threads = list(Path(f"/proc/{process or os.getpid()}/task").glob("*/children"))
        return {int(child) for thread in threads for child in thread.read_text().split()}
    except FileNotFoundError:  # a thread or the process ended meanwhile
        return set()


def start_python(*arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Python in a session of its own: an interrupt reaches it and what it starts, nobody else."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
        start_new_session=True,
        preexec_fn=_hear_interrupts,
    )


def start_program(text: str, **environment: str) -> subprocess.Popen[str]:
    """A program in a session of its own, which has printed its first line."""
    running = start_python("-P", "-c", text, **environment)
    assert running.stdout is not None
    running.stdout.readline()
    return running


def interrupt(process: subprocess.Popen[str]) -> None:
    """What Ctrl-C in a terminal sends: to the whole session."""
    os.killpg(process.pid, signal.SIGINT)


def _hear_interrupts() -> None:
    """Tests may run in the background of a shell, which makes its children ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
