"""What tuning stores hold."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import cast

from wpk.codec import decode
from wpk.performance.bound import bound
from wpk.problems import Problem
from wpk.search.store.records import Stage, TrialRecord
from wpk.search.store.rows import read_trials
from wpk.search.store.store import TuningStore
from wpk.targets.registry import find_target
from wpk.trial import Status

FILE = "trials.sqlite"
"""Name of the store in the folder that ``--cache`` names."""

EARLIER_FOLDER = "earlier"
"""Of the folder that rows share: what earlier commits made, whose stores opening would bring to today's schema."""


def stores_in(folder: Path) -> list[Path]:
    """Every store of today's wpk in a folder that rows share."""
    found = (path.relative_to(folder) for path in folder.rglob(FILE))
    return sorted(folder / path for path in found if path.parts[0] != EARLIER_FOLDER)


def all_trials(path: Path) -> tuple[TrialRecord, ...]:
    """Every trial of a store; none where there is no file."""
    if not path.is_file():
        return ()
    with TuningStore(path) as store, store.reading() as connection:
        return read_trials(connection)


def damage(path: Path) -> list[str]:
    """What SQLite finds wrong with a store; empty where it is consistent."""
    with closing(sqlite3.connect(path)) as connection:
        checks = connection.execute("PRAGMA integrity_check").fetchall()
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    return [text for (text,) in checks if text != "ok"] + [f"orphan: {row}" for row in orphans]


def measured_again(before: frozenset[str], trials: tuple[TrialRecord, ...]) -> list[TrialRecord]:
    """Trials of a search that measured what was in the store before; finalists are by intent."""
    known = {_what(each) for each in trials if each.uid in before}
    return [
        each
        for each in trials
        if each.uid not in before and each.stage is Stage.SEARCH and _what(each) in known
    ]


def _what(trial: TrialRecord) -> tuple[object, ...]:
    return trial.problem, trial.template, trial.version, trial.schedule


def over_bound(path: Path) -> list[tuple[float, TrialRecord]]:
    """Every trial that ran correctly, with its median as a multiple of its problem's bound."""
    with TuningStore(path) as store, store.reading() as connection:
        texts = dict(connection.execute("SELECT digest, json FROM problems"))
        trials = read_trials(connection)
    limits: dict[tuple[str, str], float] = {}
    ratios = []
    for trial in trials:
        if trial.status is not Status.OK:
            continue
        key = (trial.problem, trial.target)
        if key not in limits:
            data = json.loads(texts[trial.problem])
            problem: Problem = decode(data, cast("type[Problem]", Problem), "problem")
            limits[key] = bound(problem, find_target(trial.target)).seconds
        ratios.append((median(trial.seconds) / limits[key], trial))
    return ratios
