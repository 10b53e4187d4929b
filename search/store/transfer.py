"""The tuning store is exported as JSON lines and imported again: to move it, to keep it, to replay it.

The first line is a header: schema, version of wpk, targets measured on, and how many lines follow.
Then one line a run, a problem and a trial each, in this order: ``{"run": …}``, ``{"problem": …}``,
``{"trial": …}``. A trial is told from all others by its ``uid``, so importing twice adds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

from wpk.codec import FieldError, decode, encode
from wpk.search.store.key import canonical_json, json_digest
from wpk.search.store.older_lines import run_of_today, trial_of_today
from wpk.search.store.records import RunRecord, RunState, TrialRecord
from wpk.search.store.rows import insert_problem, insert_run, insert_trial, read_runs, read_trials
from wpk.search.store.schema import SCHEMA, StoreError
from wpk.search.store.store import TuningStore
from wpk.version import VERSION

T = TypeVar("T")

_READABLE = range(1, SCHEMA + 1)
"""Schemas of files that can be imported."""


@dataclass(frozen=True)
class Header:
    """The header is the first line.

    Attributes:
        tuning_store: Schema of the store.
        wpk: Version that wrote the file.
        targets: Name and architecture of every target that trials were measured on.
        runs: Lines of runs that follow.
        problems: Lines of problems.
        trials: Lines of trials.
    """

    tuning_store: int
    wpk: str
    targets: tuple[tuple[str, str], ...]
    runs: int
    problems: int
    trials: int


@dataclass(frozen=True)
class StoredProblem:
    """A problem's line says what a trial's digest stands for."""

    digest: str
    json: str


@dataclass(frozen=True)
class ImportCounts:
    """These numbers say what an import did.

    Attributes:
        added: Trials that are new to the store.
        present: Trials that it had already.
    """

    added: int
    present: int


def export_lines(store: TuningStore) -> Iterator[str]:
    """Return the lines of the whole store as it is now, each with its line end.

    Raises:
        StoreError: The file is damaged or cannot be read.
    """
    with store.reading() as connection:
        trials = read_trials(connection)
        runs = read_runs(connection)
        rows = connection.execute("SELECT digest, json FROM problems ORDER BY digest")
        problems = [StoredProblem(*row) for row in rows]
    targets = tuple(sorted({(each.target, each.arch) for each in trials}))
    counts = len(runs), len(problems), len(trials)
    yield _line(encode(Header(SCHEMA, VERSION, targets, *counts), Header))
    for run in runs:
        yield _line({"run": encode(run, RunRecord)})
    for problem in problems:
        yield _line({"problem": encode(problem, StoredProblem)})
    for trial in trials:
        yield _line({"trial": encode(trial, TrialRecord)})


def import_lines(
    store: TuningStore, lines: Iterable[str], name: str, here: tuple[str, str] | None
) -> ImportCounts:
    """Add exported lines to a store: all of them, or in case of an error none.

    Args:
        store: Where to.
        lines: What `export_lines` made.
        name: Of the file, for messages.
        here: Name and architecture of the target that this machine measures on; trials of others
            are refused. None takes all: no lookup finds those of another target.

    Raises:
        StoreError: The file is damaged, of another schema, or was measured on another target.
    """
    reader = _Reader(name)
    numbered = enumerate(lines, start=1)
    header = reader.header(next(numbered, (1, ""))[1])
    if here is not None:
        _refuse_foreign(header, name, here)
    added = 0
    with store.writing() as connection:
        for number, line in numbered:
            entry = reader.entry(number, line)
            if isinstance(entry, RunRecord):
                insert_run(connection, entry)
            elif isinstance(entry, StoredProblem):
                insert_problem(connection, entry.digest, entry.json)
            else:
                added += insert_trial(connection, entry)
        reader.finish(header)
    return ImportCounts(added, header.trials - added)


def _refuse_foreign(header: Header, name: str, here: tuple[str, str]) -> None:
    for target, arch in header.targets:
        if (target, arch) != here:
            raise StoreError(
                f"{name} was measured on {target} ({arch}), this device is {here[0]} ({here[1]})",
                fix="import it with --keep-foreign to keep it without using it here",
            )


class _Reader:
    """Lines to entries, each checked against those before it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._number = 1
        self._schema = SCHEMA
        self._targets: set[tuple[str, str]] = set()
        self._runs: set[str] = set()
        self._problems: set[str] = set()
        self._trials = 0

    def header(self, line: str) -> Header:
        data = self._json(line)
        schema = data.get("tuning_store")
        if schema is None:
            self._wrong("is no header of a tuning store")
        if schema not in _READABLE:
            raise StoreError(
                f"{self._name} has schema {schema!r}, this wpk reads {_READABLE[0]} to {_READABLE[-1]}",
                fix="export it again with this version of wpk",
            )
        header = self._decode(data, Header, "header")
        self._schema = header.tuning_store
        self._targets = set(header.targets)
        return header

    def entry(self, number: int, line: str) -> RunRecord | StoredProblem | TrialRecord:
        self._number = number
        data = self._json(line)
        if len(data) == 1 and "run" in data:
            return self._run(data["run"])
        if len(data) == 1 and "problem" in data:
            return self._problem(data["problem"])
        if len(data) == 1 and "trial" in data:
            return self._trial(data["trial"])
        self._wrong("is neither a run nor a problem nor a trial")

    def finish(self, header: Header) -> None:
        seen = len(self._runs), len(self._problems), self._trials
        told = header.runs, header.problems, header.trials
        if seen != told:
            words = "{} runs, {} problems and {} trials".format
            self._wrong(f"is the last: {words(*seen)} were read, the header says {words(*told)}")

    def _run(self, data: Any) -> RunRecord:
        try:
            data = run_of_today(data, self._schema)
        except FieldError as error:
            self._wrong(str(error))
        run = self._decode(data, RunRecord, "run")
        self._runs.add(run.id)
        # Wherever it was running, it is not running in this store.
        return replace(run, state=RunState.INTERRUPTED) if run.state is RunState.RUNNING else run

    def _problem(self, data: Any) -> StoredProblem:
        problem = self._decode(data, StoredProblem, "problem")
        if json_digest(problem.json) != problem.digest:
            self._wrong(f"problem.digest: {problem.digest[:12]!r} is not that of its text")
        self._problems.add(problem.digest)
        return problem

    def _trial(self, data: Any) -> TrialRecord:
        trial = self._decode(trial_of_today(data, self._schema), TrialRecord, "trial")
        for field, value, known in (
            ("run", trial.run, self._runs),
            ("problem", trial.problem, self._problems),
            ("target", (trial.target, trial.arch), self._targets),
        ):
            if value not in known:
                self._wrong(f"trial.{field}: {value!r} is in no line before")
        self._trials += 1
        return trial

    def _json(self, line: str) -> dict[str, Any]:
        try:
            data = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            self._wrong(f"is no JSON: {error}")
        if not isinstance(data, dict):
            self._wrong("is no JSON object")
        return data

    def _decode(self, data: Any, hint: type[T], path: str) -> T:
        try:
            return decode(data, hint, path)
        except FieldError as error:
            self._wrong(str(error))

    def _wrong(self, what: str) -> NoReturn:
        raise StoreError(
            f"{self._name}, line {self._number}: {what}",
            fix="export the store again; nothing of this file was imported",
        )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _line(data: object) -> str:
    return canonical_json(data) + "\n"
