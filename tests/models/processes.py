"""What tests ask of processes."""

from __future__ import annotations

import os
from pathlib import Path


def children(process: int | None = None) -> set[int]:
    """Processes that some thread of this one, or of another, started and that still run."""
    try:
        threads = list(Path(f"/proc/{process or os.getpid()}/task").glob("*/children"))
        return {int(child) for thread in threads for child in thread.read_text().split()}
    except FileNotFoundError:  # a thread or the process ended meanwhile
        return set()
