"""Runs and trials become rows of the tuning store's tables, and rows become runs and trials."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import fields
from typing import Any

from wpk.codec import decode, encode
from wpk.search.store.key import canonical_json
from wpk.search.store.records import RunRecord, RunRequest, RunState, Stage, TrialRecord
from wpk.trial import Regime, Status

_RUN = ", ".join(field.name for field in fields(RunRecord))
_TRIAL = ", ".join(field.name for field in fields(TrialRecord))


def insert_run(connection: sqlite3.Connection, run: RunRecord) -> bool:
    """Enter a run; return False, and change nothing, where a run of its name is there already."""
    return _insert(connection, "runs", "id", encode(run, RunRecord))


def insert_problem(connection: sqlite3.Connection, digest: str, text: str) -> None:
    """Keep a problem's canonical JSON under its digest."""
    connection.execute(
        "INSERT INTO problems VALUES (?, ?) ON CONFLICT (digest) DO NOTHING", (digest, text)
    )


def insert_trial(connection: sqlite3.Connection, record: TrialRecord) -> bool:
    """Store a trial; return False where it is there already."""
    return _insert(connection, "trials", "uid", encode(record, TrialRecord))


def _insert(connection: sqlite3.Connection, table: str, key: str, record: dict[str, Any]) -> bool:
    """Insert a record unless there is one of its key; what is no scalar is written as JSON."""
    row = {k: canonical_json(v) if isinstance(v, dict | list) else v for k, v in record.items()}
    values = ", ".join(f":{name}" for name in row)
    query = (
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values}) ON CONFLICT ({key}) DO NOTHING"
    )
    return connection.execute(query, row).rowcount == 1


def read_runs(connection: sqlite3.Connection) -> tuple[RunRecord, ...]:
    """Return all runs, the latest last.

    Raises:
        ValueError: A row is none that `insert_run` writes.
    """
    rows = connection.execute(f"SELECT {_RUN} FROM runs ORDER BY started, id")
    return tuple(_run(row) for row in rows)


def read_trials(connection: sqlite3.Connection, **equal: str) -> tuple[TrialRecord, ...]:
    """Return the trials whose columns have these values, in the order in which they were stored.

    Raises:
        ValueError: A row is none that `insert_trial` writes.
    """
    condition = " AND ".join(f"{name} = :{name}" for name in equal) or "TRUE"
    query = f"SELECT {_TRIAL} FROM trials WHERE {condition} ORDER BY number"
    return tuple(_trial(row) for row in connection.execute(query, equal))


def _run(row: tuple[Any, ...]) -> RunRecord:
    values = dict(zip((field.name for field in fields(RunRecord)), row, strict=True))
    request = values["request"]
    changed = {
        "state": RunState(values["state"]),
        "request": request and decode(json.loads(request), RunRequest, "runs.request"),
    }
    return RunRecord(**values | changed)


def _trial(row: tuple[Any, ...]) -> TrialRecord:
    values = dict(zip((field.name for field in fields(TrialRecord)), row, strict=True))
    regime = values["regime"]
    changed = {
        "schedule": tuple((name, value) for name, value in json.loads(values["schedule"])),
        "status": Status(values["status"]),
        "regime": None if regime is None else Regime(regime),
        "stage": Stage(values["stage"]),
        "seconds": tuple(json.loads(values["seconds"])),
    }
    return TrialRecord(**values | changed)
