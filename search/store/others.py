"""What other runs measured of a template: its problems with their trials, for searchers to begin with."""

from __future__ import annotations

import json
from typing import Any

from wpk.candidate import Candidate, Maker
from wpk.codec import FieldError, decode
from wpk.problems import Problem
from wpk.search.store.key import Setup
from wpk.search.store.records import Stage, TrialRecord
from wpk.search.store.rows import read_trials
from wpk.search.store.store import TuningStore
from wpk.trial import Regime, Trial

MOST_PROBLEMS = 48
"""Those measured last; more teach a searcher little, and reading them takes time from the search."""


def measured_by_others(
    store: TuningStore, maker: Maker, setup: Setup, regime: Regime, run: str
) -> dict[Problem, tuple[Trial, ...]]:
    """Return the trials of a template's schedules by problem, without those of one run.

    So a run that is resumed learns from what it learnt from before. Trials of one schedule are one, that of the
    first run; problems that this wpk cannot read are left out.

    Raises:
        StoreError: The file is damaged or cannot be read.
    """
    with store.reading() as connection:
        made = {"template": maker.name, "version": maker.version}
        setting = {"target": setup.target, "arch": setup.arch}
        records = [
            each
            for each in read_trials(connection, **made, **setting)
            if each.run != run and each.stage is Stage.SEARCH and each.regime in (None, regime)
        ]
        groups: dict[str, list[TrialRecord]] = {}
        for record in reversed(records):
            if record.problem in groups or len(groups) < MOST_PROBLEMS:
                groups.setdefault(record.problem, []).append(record)
        texts = dict(connection.execute("SELECT digest, json FROM problems").fetchall())
    found: dict[Problem, tuple[Trial, ...]] = {}
    for digest, group in groups.items():
        problem = _problem(str(texts[digest]))
        if problem is not None:
            found[problem] = _trials(maker, group)
    return found


_ANY_PROBLEM: Any = Problem
"""An abstract class, which mypy takes for no type that could be read."""


def _problem(text: str) -> Problem | None:
    try:
        found: Problem = decode(json.loads(text), _ANY_PROBLEM, "problem")
    except FieldError:
        return None
    return found


def _trials(maker: Maker, records: list[TrialRecord]) -> tuple[Trial, ...]:
    """One a schedule; the records come latest first, so that the earliest is the one that stays."""
    trials = {
        each.schedule: Trial(Candidate(maker, each.schedule), each.status, each.seconds)
        for each in records
    }
    return tuple(trials.values())
