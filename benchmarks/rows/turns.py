"""Engines of several versions of wpk, each in a process of its own, timed in turns on one GPU.

Two versions of a package cannot be in one process. So each side is served by a process (`subjects.served_engine`), and
one asks: while an engine is timed the others have nothing to do, and the next request comes when the last was answered.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, islice, permutations
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from subjects import served_engine
from subjects.earlier import first_on_path

import wpk
from rows.base import RowError
from rows.side_by_side import MOST_STARTS, SAMPLE_SECONDS
from wpk.device.timing import repetitions_for
from wpk.engine import read_arrays

TURNS = 60
"""Samples of each side while all are loaded: ten times all orders of three."""

_LOOKS = 3
_EXIT_SECONDS = 20.0
_SHOWN_LINES = 12

Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Side:
    """An engine that takes turns with others.

    Attributes:
        name: What figures call it.
        plan: What it executes.
        package: Folder that holds its wpk; None for the one that is running.
    """

    name: str
    plan: Path
    package: Path | None = None

    @property
    def wpk(self) -> Path:
        """The package that its process must import."""
        folder = Path(wpk.__path__[0]) if self.package is None else self.package / "wpk"
        return folder.resolve()


@dataclass(frozen=True)
class Load:
    """What one load of all engines gave.

    Attributes:
        seconds: Of one start, turn after turn, by side.
        outputs: Of each side on the same inputs.
    """

    seconds: Mapping[str, Sequence[float]]
    outputs: Mapping[str, Arrays]


class EngineServer:
    """The process of a side."""

    def __init__(self, side: Side, inputs: Path, folder: Path, device: str) -> None:
        """Start it; `outputs` waits until it has loaded.

        Args:
            side: What it serves.
            inputs: File of the arrays that it runs on.
            folder: For what it writes.
            device: ``gpu`` or ``cpu``.
        """
        self._side, self._log = side, folder / f"{side.name}.log"
        self._outputs = folder / f"{side.name}.outputs.npz"
        server = [sys.executable, "-P", served_engine.__file__]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*server, side.plan, inputs, self._outputs, device],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=None if side.package is None else first_on_path(side.package),
                text=True,
            )

    def outputs(self) -> Arrays:
        """What it gave on the inputs, when it had loaded; to be asked first, and once.

        Raises:
            RowError: It has ended, or runs another wpk than it should.
        """
        found = Path(self._answer()["package"]).resolve()
        if found != self._side.wpk:
            raise RowError(
                f"the engine '{self._side.name}' runs the wpk of {found}, not of {self._side.wpk}"
            )
        return read_arrays(self._outputs)

    def seconds(self, starts: int) -> float:
        """Time of one of so many starts that follow each other.

        Raises:
            RowError: It has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"starts": starts}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._ended() from error
        found: float = self._answer()["seconds"]
        return found

    def __enter__(self) -> Self:
        """The server itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Have it end by itself, or end it."""
        try:
            self._process.communicate(timeout=_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        found: dict[str, Any] = json.loads(line)
        return found

    def _ended(self) -> RowError:
        code = self._process.wait()
        said = "\n".join(self._log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:])
        return RowError(f"the engine '{self._side.name}' ended with exit code {code}:\n{said}")


def take_turns(
    sides: Sequence[Side], inputs: Path, folder: Path, device: str = "gpu", turns: int = TURNS
) -> Load:
    """Load all sides, and time them in turns.

    Args:
        sides: Engines, each with a name of its own.
        inputs: File of the arrays that all run on.
        folder: For what they write.
        device: ``gpu`` or ``cpu``.
        turns: Samples of each; all orders of the sides come in turn.

    Raises:
        RowError: One has ended, or runs another wpk than it should.
    """
    with ExitStack() as held:
        servers = {
            side.name: held.enter_context(EngineServer(side, inputs, folder, device))
            for side in sides
        }
        outputs = {name: server.outputs() for name, server in servers.items()}
        starts = {name: _starts(server) for name, server in servers.items()}
        seconds: dict[str, list[float]] = {name: [] for name in servers}
        for order in islice(cycle(permutations(servers)), turns):
            for name in order:
                seconds[name].append(servers[name].seconds(starts[name]))
    return Load(seconds, outputs)


def _starts(server: EngineServer) -> int:
    """How many make a sample."""
    once = min(server.seconds(1) for _ in range(_LOOKS))
    return repetitions_for(once, SAMPLE_SECONDS, 1, MOST_STARTS)
