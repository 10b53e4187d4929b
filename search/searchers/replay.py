"""Recorded timings are JSON lines, which searchers search again without a GPU.

    {"device": ..., "problem": {"name": ..., "features": {...}}, "template": ..., "parameters": [...]}
    {"schedule": [128, 64, 32], "seconds": [1.25e-05, 1.27e-05], "status": "ok"}
    {"schedule": [256, 64, 32], "seconds": [], "status": "compile_failed"}

The header first, then a line a schedule with its parameters' values in the header's order. A file whose
name ends in ``.xz`` is compressed.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from wpk.candidate import Candidate, Configuration, Maker
from wpk.errors import ScheduleError
from wpk.schedules import Schedule
from wpk.search.searchers.base import Searcher
from wpk.search.searchers.space import SearchSpace
from wpk.trial import Status, Trial

COMPRESSED = ".xz"

RECORDED = "recorded"
"""The version of a recording's template: whichever it was then."""


@dataclass(frozen=True)
class Recording:
    """A recording holds trials of one problem, template and device; what is not recorded is not searched.

    Attributes:
        device: What was measured on.
        problem: Its name.
        features: The problem in numbers (`Problem.features`).
        template: Name of the template.
        parameters: Names of a schedule's parameters, in the order of its fields.
        trials: One a schedule.
    """

    device: str
    problem: str
    features: dict[str, float]
    template: str
    parameters: tuple[str, ...]
    trials: tuple[Trial, ...]

    @cached_property
    def space(self) -> SearchSpace:
        """The recorded schedules; their type is the recording's own, not the template's of today.

        Raises:
            ScheduleError: Nothing is recorded.
        """
        table = np.asarray(
            [[v for _, v in trial.candidate.configuration] for trial in self.trials], np.int64
        )
        table = table.reshape(-1, len(self.parameters))
        schedule_type = make_dataclass(
            "RecordedSchedule",
            [(name, int) for name in self.parameters],
            bases=(Schedule,),
            frozen=True,
        )
        columns = dict(zip(self.parameters, table.T, strict=True))
        return SearchSpace(schedule_type, columns, self.features)

    @cached_property
    def best(self) -> float:
        """The least recorded cost in seconds; infinity where all failed."""
        return min((trial.cost for trial in self.trials), default=float("inf"))

    @cached_property
    def _by_schedule(self) -> dict[Configuration, Trial]:
        return {trial.candidate.configuration: trial for trial in self.trials}

    def trial(self, schedule: Schedule) -> Trial:
        """Return what was recorded of a schedule of `space`."""
        return self._by_schedule[schedule.parameters()]


def replay(searcher: Searcher, recording: Recording, budget: int, batch: int = 8) -> list[Trial]:
    """Return the trials a search would have made, in its order.

    Args:
        searcher: Searches the recording's space.
        recording: What answers.
        budget: Trials at most; fewer where the searcher is exhausted.
        batch: Schedules asked for at a time, told together.
    """
    trials: list[Trial] = []
    while len(trials) < budget:
        schedules = searcher.ask(min(batch, budget - len(trials)))
        if not schedules:
            break
        outcomes = [recording.trial(schedule) for schedule in schedules]
        searcher.tell(outcomes)
        trials += outcomes
    return trials


def best_so_far(trials: Sequence[Trial]) -> list[float]:
    """Return the least cost after each trial, in seconds."""
    costs = np.minimum.accumulate([trial.cost for trial in trials]) if trials else np.zeros(0)
    return [float(cost) for cost in costs]


def write_recording(recording: Recording, path: Path) -> None:
    """Write a recording; an existing file is replaced."""
    header = {
        "device": recording.device,
        "problem": {"name": recording.problem, "features": recording.features},
        "template": recording.template,
        "parameters": list(recording.parameters),
    }
    lines = [json.dumps(header)]
    for trial in recording.trials:
        row: dict[str, object] = {"schedule": [value for _, value in trial.candidate.configuration]}
        row |= {"seconds": list(trial.seconds), "status": trial.status.value}
        lines.append(json.dumps(row | ({"detail": trial.detail} if trial.detail else {})))
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(lzma.compress(data) if path.suffix == COMPRESSED else data)


def read_recording(path: Path) -> Recording:
    """Read a recording.

    Raises:
        ScheduleError: A line is damaged; names it.
    """
    number = 0
    try:
        with _opened(path) as file:
            header = json.loads(file.readline())
            names = tuple(str(name) for name in header["parameters"])
            maker = Maker(str(header["template"]), RECORDED)
            trials = []
            for number, line in enumerate(file, 1):  # noqa: B007 - the error names it
                trials.append(_trial(maker, names, json.loads(line)))
            return Recording(
                device=str(header["device"]),
                problem=str(header["problem"]["name"]),
                features={str(k): float(v) for k, v in header["problem"]["features"].items()},
                template=maker.name,
                parameters=names,
                trials=tuple(trials),
            )
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, lzma.LZMAError) as error:
        raise ScheduleError(
            f"line {number + 1} of the recording {path} cannot be read: {error!r}",
            fix="if the writing was cut off, delete the last line; else record again",
        ) from error


def _opened(path: Path) -> TextIO:
    if path.suffix == COMPRESSED:
        return lzma.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _trial(maker: Maker, names: tuple[str, ...], row: dict[str, Any]) -> Trial:
    values = (int(value) for value in row["schedule"])
    return Trial(
        candidate=Candidate(maker, tuple(zip(names, values, strict=True))),
        status=Status(row["status"]),
        seconds=tuple(float(value) for value in row["seconds"]),
        detail=str(row.get("detail", "")),
    )
