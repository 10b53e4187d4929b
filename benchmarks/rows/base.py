"""What a row is given, and what it hands back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from export import weights_of

from rows.goals import Goal
from rows.result_file import Record

BENCHMARKS = Path(__file__).parents[1]

MOST_SECONDS = 480.0
"""Of one row."""

BUDGET, EFFORT = "150s", 1
"""What tuning a whole network may cost unless the caller says: so that a row ends in time."""

EARLIER = "bfc01fc0"
"""The commit whose engines today's are compared with unless the caller says: the last one before forms
competed (docs/decisions/0050-forms.md)."""

_SHOWN_LINES = 12


class RowError(Exception):
    """A row could not be measured; the next call of the script tries it again."""


@dataclass(frozen=True)
class Outcome:
    """What was measured.

    Attributes:
        passed: Whether it is what the row asks for.
        summary: The figures that matter, in a few words.
        figures: All of them, as plain data; times in seconds.
    """

    passed: bool
    summary: str
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finished:
    """A command that succeeded: its wall-clock seconds and its standard output."""

    seconds: float
    output: str


@dataclass(frozen=True)
class Context:
    """What a row works with.

    Attributes:
        store: Folder that rows share and that is carried over: compiled kernels, trials, networks.
        folder: Of this row alone, empty when it begins; stays for whoever wants to look.
        deadline: When the row must have ended, on `time.monotonic`.
        budget: Of measuring where a whole network is tuned, as ``wpk optimize`` takes it.
        effort: Likewise.
        records: Of the rows in the file of results; a row that is last finds all others there.
        since: The earlier commit that rows compare with.
        environment: Variables of commands, where they are not those of this process.
    """

    store: Path
    folder: Path
    deadline: float
    budget: str = BUDGET
    effort: int = EFFORT
    records: Mapping[str, Record] = field(default_factory=dict)
    since: str = EARLIER
    environment: Mapping[str, str] | None = None

    def seconds_left(self) -> float:
        """Until the deadline.

        Raises:
            RowError: It has passed.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise RowError(f"took longer than {MOST_SECONDS:.0f} s")
        return left

    def wpk(self, *arguments: object) -> Finished:
        """Run ``python -m wpk`` with the arguments: texts and paths.

        Raises:
            RowError: Its exit code is not 0, or it runs past the deadline.
        """
        return self.run(wpk_command(*arguments))

    def run(self, command: list[str]) -> Finished:
        """Run a command. What it says on stderr is shown only where it fails.

        Raises:
            RowError: Its exit code is not 0, or it runs past the deadline.
        """
        begun = time.perf_counter()
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=self.seconds_left(),
                check=False,
                env=self.environment,
            )
        except subprocess.TimeoutExpired as error:
            raise RowError(f"took longer than {MOST_SECONDS:.0f} s: {_words(command)}") from error
        seconds = time.perf_counter() - begun
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-_SHOWN_LINES:])
            raise RowError(f"exit code {done.returncode} of {_words(command)}:\n{said}")
        return Finished(seconds, done.stdout)

    def exported(self, network: str) -> Path:
        """A network of ``benchmarks/export.py``, exported where that has not been done."""
        path = self.store / "networks" / f"{network}.onnx"
        if not (path.is_file() and weights_of(path).is_file()):
            self.export(network, path)
        return path

    def export(self, network: str, path: Path) -> dict[str, Any]:
        """Export a network in a process of its own; return what the exporter says of the file."""
        script = str(BENCHMARKS / "export.py")
        said = self.run([sys.executable, script, network, str(path)]).output
        figures: dict[str, Any] = json.loads(said.splitlines()[-1])
        return figures


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        name: What ``--only`` matches; dots between its parts.
        claim: What it shows, in words.
        measure: Does it.
        is_last: Whether it looks at what all other rows measured.
        goals: What it is asked to reach, in the order in which its figures hold them.
    """

    name: str
    claim: str
    measure: Callable[[Context], Outcome]
    is_last: bool = False
    goals: tuple[Goal, ...] = ()


def wpk_command(*arguments: object) -> list[str]:
    """The command that runs wpk with this interpreter."""
    return [sys.executable, "-m", "wpk", *map(str, arguments)]


def microseconds(seconds: float) -> str:
    """A time as rows print it."""
    return f"{seconds * 1e6:.1f} µs"


def _words(command: list[str]) -> str:
    return " ".join(command[1:])
