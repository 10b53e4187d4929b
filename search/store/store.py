"""The tuning store keeps every trial ever measured in one SQLite file.

Several processes may read and write it at once. A trial is on the disk when `TuningStore.record`
returns: neither an error nor a kill nor a power cut loses it afterwards.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Self

from wpk.search.store.key import StoreKey
from wpk.search.store.records import RunRecord, RunRequest, RunState, Stage, TrialRecord
from wpk.search.store.rows import insert_problem, insert_run, insert_trial, read_runs, read_trials
from wpk.search.store.schema import StoreError, connect, damaged, guarded, transaction
from wpk.trial import Regime, Status, Trial
from wpk.version import VERSION

MODELS = "models"
"""The searcher of what the models chose, which is measured before any search."""

LONGEST_GAP = 60.0
"""Seconds between two trials beyond which a run did not go on in between."""


class TuningStore:
    """A tuning store is open for one thread: each thread and process opens its own.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        """Open the file; make it first where there is none.

        Raises:
            StoreError: It is damaged, of another program or version, or cannot be written.
        """
        self.path = path
        self._connection = connect(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; calling it again does nothing."""
        self._connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Hold one consistent view of the store, for the modules of the store itself.

        Raises:
            StoreError: The file is damaged or cannot be read.
        """
        with guarded(self.path), transaction(self._connection, writes=False):
            try:
                yield self._connection
            except ValueError as error:  # a row that no wpk writes
                raise damaged(self.path, str(error)) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Make a change as a whole or not at all, for the modules of the store itself."""
        with guarded(self.path), transaction(self._connection, writes=True):
            yield self._connection

    def begin_run(self, seed: int, request: RunRequest | None = None) -> RunRecord:
        """Enter a run, under a name that is new to this and any other store."""
        started = time.time()
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(started))}-{secrets.token_hex(4)}"
        run = RunRecord(name, seed, started, RunState.RUNNING, VERSION, request)
        with self.writing() as connection:
            insert_run(connection, run)
        return run

    def find_run(self, name: str) -> RunRecord:
        """Return an earlier run by its name, or by the beginning of its name or of the name's last part.

        Raises:
            StoreError: There is no such run, or several; names the latest.
        """
        runs = self.runs()
        found = [run for run in runs if run.id == name] or [
            run for run in runs if name and _is_short_for(name, run.id)
        ]
        if len(found) == 1:
            return found[0]
        seen = "no run" if not found else f"{len(found)} runs"
        latest = ", ".join(run.id for run in (found or runs)[-3:]) or "none"
        raise StoreError(
            f"tuning store {self.path} has {seen} {name!r}; its latest: {latest}",
            fix="resume one of these, or start anew without --resume: trials are found anyway",
        )

    def resume_run(self, name: str) -> RunRecord:
        """Enter an earlier run again; its trials are there for whoever asks for their keys.

        Raises:
            StoreError: See `find_run`.
        """
        run = self.find_run(name)
        self.end_run(run.id, RunState.RUNNING)
        return replace(run, state=RunState.RUNNING)

    def end_run(self, name: str, state: RunState) -> None:
        """Note what became of a run, which is given by its whole name."""
        with self.writing() as connection:
            connection.execute("UPDATE runs SET state = ? WHERE id = ?", (state.value, name))

    def runs(self) -> tuple[RunRecord, ...]:
        """Return all runs, the latest last."""
        with self.reading() as connection:
            return read_runs(connection)

    def record(
        self,
        run: str,
        key: StoreKey,
        trial: Trial,
        regime: Regime,
        stage: Stage = Stage.SEARCH,
    ) -> None:
        """Store a trial; once this returns, the trial is on the disk.

        Args:
            run: Name of the run that measured it.
            key: What was measured, where and with what.
            trial: A candidate of the key's maker, with its outcome.
            regime: State of the caches; not stored for a trial that failed, which fails in all.
            stage: What it was measured for.

        Raises:
            ValueError: Seconds that are no durations, or an ok trial without any.
            StoreError: The file cannot be written.
        """
        record = TrialRecord(
            uid=uuid.uuid4().hex,
            run=run,
            problem=key.digest,
            **asdict(key.setup),
            template=key.maker.name,
            version=key.maker.version,
            schedule=trial.candidate.configuration,
            status=trial.status,
            regime=regime if trial.status is Status.OK else None,
            stage=stage,
            seconds=trial.seconds,
            detail=trial.detail,
            at=time.time(),
            searcher=trial.proposer,
        )
        with self.writing() as connection:
            insert_problem(connection, key.digest, key.problem_json)
            insert_trial(connection, record)

    def trials(self, key: StoreKey) -> tuple[TrialRecord, ...]:
        """Return all trials under a key, in the order in which they were stored."""
        with self.reading() as connection:
            return read_trials(
                connection,
                problem=key.digest,
                template=key.maker.name,
                version=key.maker.version,
                **asdict(key.setup),
            )

    def spent(self, run: str) -> tuple[int, float]:
        """Return what a run has spent on searching: schedules measured, and seconds between them.

        What the models chose is measured before the search, and finalists after it: neither counts.
        Longer gaps than `LONGEST_GAP` are left out: the run was interrupted there.
        """
        query = (
            "SELECT count(*), total(CASE WHEN gap BETWEEN 0 AND ? THEN gap END) FROM (SELECT"
            " stage, searcher, at - lag(at) OVER (ORDER BY number) AS gap FROM trials WHERE run = ?)"
            " WHERE stage = ? AND searcher != ?"
        )
        values = (LONGEST_GAP, run, Stage.SEARCH.value, MODELS)
        with self.reading() as connection:
            trials, seconds = connection.execute(query, values).fetchone()
        return int(trials), float(seconds)

    def pace(self, target: str) -> float | None:
        """Return the mean seconds from one trial of a run to its next, on a target; None where there are none.

        Longer gaps than `LONGEST_GAP` are left out: the run was interrupted there.
        """
        query = (
            "SELECT avg(gap) FROM (SELECT at - lag(at) OVER (PARTITION BY run ORDER BY number)"
            " AS gap FROM trials WHERE target = ?) WHERE gap BETWEEN 0 AND ?"
        )
        with self.reading() as connection:
            (mean,) = connection.execute(query, (target, LONGEST_GAP)).fetchone()
        return None if mean is None else float(mean)

    def clear(self, *, target: str | None = None, template: str | None = None) -> int:
        """Remove trials: all, or those of one target, template or both. Return how many were removed.

        Runs and problems that have none left go with them; a run that goes on stays.
        """
        with self.writing() as connection:
            removed: int = connection.execute(
                "DELETE FROM trials WHERE target = coalesce(?, target)"
                " AND template = coalesce(?, template)",
                (target, template),
            ).rowcount
            connection.execute(
                "DELETE FROM runs WHERE state != ? AND id NOT IN (SELECT run FROM trials)",
                (RunState.RUNNING.value,),
            )
            connection.execute(
                "DELETE FROM problems WHERE digest NOT IN (SELECT problem FROM trials)"
            )
        return removed


def _is_short_for(text: str, name: str) -> bool:
    return name.startswith(text) or name.rpartition("-")[2].startswith(text)
