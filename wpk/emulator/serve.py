"""The child's side of `wpk.emulator.child`: ``python -m wpk.emulator.serve`` executes what it is asked."""

from pathlib import Path
from typing import Any

import numpy as np

from wpk.emulator.emulator import Emulator
from wpk.emulator.mode import Mode
from wpk.emulator.native import Statistics, take_runtime
from wpk.execution import BoundLaunch
from wpk.process import serve


class _Service:
    """An emulator that answers; what is not here is the emulator's own."""

    def __init__(self) -> None:
        self._emulator = Emulator()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._emulator, name)

    def start(self, mode: Mode, threads: int | None, runtime: Path) -> None:
        """Begin anew, in a mode."""
        take_runtime(runtime, sanitized=mode.sanitized)
        self._emulator = Emulator(mode, threads=threads)

    def write(self, address: int, data: bytearray) -> None:
        """See `Emulator.write`."""
        self._emulator.write(address, np.frombuffer(data, np.uint8))

    def launch(self, launch: BoundLaunch, library: Path) -> Statistics:
        """See `Emulator.execute`."""
        return self._emulator.execute(launch, library)


if __name__ == "__main__":
    serve(_Service)
