"""Records of spaces as lines of JSON: a line a space, then a line a trial, in the order of measuring.

    {"problem": "vit.fp16.b32.3", "is": {"type": "Convolution", ...}}
    {"space": "resnet50.3x3_14.fp16/conv_mma", "version": "8", "parameters": [...], "legal": 10830,
     "survivors": 300, "kept": [[...], ...], "grid": [[...], ...]}
    {"of": "resnet50.3x3_14.fp16/conv_mma", "schedule": [...], "round": 0, "seconds": [...], "status": "ok",
     "estimate": 3.1e-06, "rank": 0}

Problems that `spaces.problems` does not name are described. Round 0 is the sweep over all schedules; what was timed
again in later rounds takes its place when a record is read. The estimate is the models' of the day, in seconds; the rank
is the place among all schedules of the template that the score keeps, by estimate, or null where it drops the
schedule. Records from before those were told have neither. Other lines say on what was measured.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spaces.problem_file import described, read_described
from spaces.problems import PROBLEMS
from wpk.candidate import Candidate, Maker
from wpk.problems import Problem
from wpk.trial import Status, Trial

Values = tuple[int, ...]

_DIGITS = 4  # of a time: a hundredth of a per cent, far below its noise
_DETAIL = 160  # characters of what is said of a failure


@dataclass(frozen=True)
class Header:
    """A header says what is to be recorded of a space.

    Attributes:
        problem: Name of the problem.
        template: Name of the template.
        version: Its version.
        parameters: Names of a schedule's values.
        legal: Number of its legal schedules.
        survivors: How many of them the score keeps.
        kept: Values of those among them that are recorded, the first by estimate first.
        grid: Values of the grid's schedules.
    """

    problem: str
    template: str
    version: str
    parameters: tuple[str, ...]
    legal: int
    survivors: int
    kept: tuple[Values, ...]
    grid: tuple[Values, ...]

    @property
    def key(self) -> str:
        """What its trials name."""
        return f"{self.problem}/{self.template}"

    def line(self) -> dict[str, object]:
        """As it is written."""
        of = {"space": self.key, "version": self.version, "parameters": self.parameters}
        counts = {"legal": self.legal, "survivors": self.survivors}
        return {**of, **counts, "kept": self.kept, "grid": self.grid}


def _header(row: dict[str, Any]) -> Header:
    problem, _, template = str(row["space"]).rpartition("/")
    kept, grid = (tuple(tuple(map(int, each)) for each in row[part]) for part in ("kept", "grid"))
    names = tuple(map(str, row["parameters"]))
    counts = int(row["legal"]), int(row["survivors"])
    return Header(problem, template, str(row["version"]), names, *counts, kept, grid)


@dataclass(frozen=True)
class Told:
    """What the models say of a schedule before it is measured.

    Attributes:
        estimate: Predicted seconds.
        rank: Its place among the schedules of its template that the score keeps; None where it drops it.
    """

    estimate: float
    rank: int | None


def problem_line(name: str, problem: Problem) -> dict[str, object]:
    """Return a problem as it is written."""
    return {"problem": name, "is": described(problem)}


def trial_line(key: str, trial: Trial, turn: int, told: Told | None = None) -> dict[str, object]:
    """Return a trial as it is written.

    Args:
        key: Of its space.
        trial: What came of it.
        turn: 0 for the sweep, else the number of the round.
        told: What the models said.
    """
    seconds = [_rounded(value) for value in trial.seconds]
    values = [value for _, value in trial.candidate.configuration]
    line = {"of": key, "schedule": values, "round": turn, "seconds": seconds}
    line["status"] = trial.status.value
    if told is not None:
        line |= {"estimate": _rounded(told.estimate), "rank": told.rank}
    return line | ({"detail": trial.detail[:_DETAIL]} if trial.detail else {})


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.{_DIGITS}g}")


@dataclass
class Known:
    """Known is what some files have recorded.

    Attributes:
        headers: By key.
        rows: The lines of trials, by key, in the order of measuring.
        machines: On what was measured, in the order of the files.
        problems: Those that are described, by name.
    """

    headers: dict[str, Header] = field(default_factory=dict)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    machines: list[dict[str, Any]] = field(default_factory=list)
    problems: dict[str, Problem] = field(default_factory=dict)

    def problem(self, name: str) -> Problem:
        """Return the problem of that name.

        Raises:
            SystemExit: It is neither described nor one of `spaces.problems`.
        """
        found = self.problems.get(name) or PROBLEMS.get(name)
        if found is None:
            raise SystemExit(
                f"the record has trials of {name}, and does not say which problem that is"
            )
        return found

    def require_same(self, header: Header) -> None:
        """Refuse to go on with a record of other schedules.

        Raises:
            SystemExit: The known record of this space is of other schedules or another version.
        """
        if self.headers[header.key] != header:
            raise SystemExit(
                f"{header.key} was recorded with other schedules or another version of the template: "
                "record into an empty folder"
            )

    def trials(self, header: Header, maker: Maker) -> dict[Candidate, Trial]:
        """Return what is known of a space's schedules.

        Times of all later rounds take the place of the sweep's; a failure in any round is one.
        """
        found: dict[Candidate, Trial] = {}
        turns: dict[Candidate, int] = {}
        for row in self.rows.get(header.key, ()):
            candidate = Candidate(
                maker, tuple(zip(header.parameters, row["schedule"], strict=True))
            )
            status, turn = Status(row["status"]), int(row["round"])
            seconds = tuple(map(float, row["seconds"]))
            before = found.get(candidate)
            if before is not None and before.ran and status is Status.OK and turns[candidate] > 0:
                seconds = before.seconds + seconds
            if before is None or before.ran:
                found[candidate] = Trial(candidate, status, seconds, str(row.get("detail", "")))
                turns[candidate] = turn
        return found


def read_lines(paths: Iterable[Path]) -> Known:
    """Read files of lines; the last line of one that was cut off is left out.

    Raises:
        SystemExit: A line before the last is damaged.
    """
    known = Known()
    for path in paths:
        for row in _rows(path):
            if "space" in row:
                header = _header(row)
                known.headers[header.key] = header
            elif "is" in row:
                known.problems[str(row["problem"])] = read_described(row["is"], str(row["problem"]))
            elif "of" in row:
                known.rows.setdefault(str(row["of"]), []).append(row)
            else:
                known.machines.append(row)
    return known


def cut_to_whole_lines(path: Path) -> None:
    """Take away the beginning of a line at the end of a file, so that lines can be appended."""
    data = path.read_bytes()
    path.write_bytes(data[: data.rfind(b"\n") + 1])


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    lines = (lzma.decompress(data) if path.suffix == ".xz" else data).decode().splitlines()
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise SystemExit(f"line {number} of {path} is damaged: {error}") from error
        yield row
