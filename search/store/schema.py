"""The schema of the tuning store's file: its tables, opening, transactions, and what can be wrong with it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wpk.errors import WpkError

SCHEMA = 9
"""The version of the tables; it rises whenever they or their contents change. `_MIGRATIONS` brings older tables
up to date."""

APPLICATION = int.from_bytes(b"wpkt")
"""Marks an SQLite file as a tuning store (``PRAGMA application_id``)."""

BUSY_SECONDS = 30.0
"""How long to wait for another process that writes."""

_RETRY_SECONDS = 0.02

_TABLES = """
CREATE TABLE problems (
    digest TEXT PRIMARY KEY,
    json TEXT NOT NULL
);
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    seed INTEGER NOT NULL,
    started REAL NOT NULL,
    state TEXT NOT NULL,
    wpk TEXT NOT NULL,
    request TEXT
);
CREATE TABLE trials (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL REFERENCES runs (id),
    problem TEXT NOT NULL REFERENCES problems (digest),
    target TEXT NOT NULL,
    arch TEXT NOT NULL,
    compiler TEXT NOT NULL,
    driver TEXT NOT NULL,
    template TEXT NOT NULL,
    version TEXT NOT NULL,
    schedule TEXT NOT NULL,
    status TEXT NOT NULL,
    regime TEXT,
    stage TEXT NOT NULL,
    seconds TEXT NOT NULL,
    detail TEXT NOT NULL,
    at REAL NOT NULL,
    searcher TEXT NOT NULL DEFAULT ''
);
CREATE INDEX trials_of_problem ON trials (problem, template);
CREATE INDEX trials_of_run ON trials (run);
"""


_OPTIONS = """
UPDATE runs SET request = json_object(
    'model', request -> '$.model', 'model_digest', request -> '$.model_digest',
    'build', json_object(
        'target', request -> '$.target', 'precision', request -> '$.precision',
        'shapes', request -> '$.shapes', 'skip_passes', request -> '$.skipped_passes',
        'skip_templates', request -> '$.skipped_templates'),
    'search', json_object(
        'search', request -> '$.searcher', 'effort', request -> '$.effort',
        'budget', request -> '$.budget', 'seed', seed, 'operators', request -> '$.operators'))
WHERE json_valid(request)
"""

_MIGRATIONS = {
    1: ("ALTER TABLE runs ADD COLUMN request TEXT",),
    2: ("ALTER TABLE trials ADD COLUMN searcher TEXT NOT NULL DEFAULT ''",),
    3: (
        (
            "UPDATE runs SET request = json_set(request, '$.skipped_templates', json('[]'))"
            " WHERE json_valid(request)"
        ),
    ),
    4: (_OPTIONS, "ALTER TABLE runs DROP COLUMN argv"),
    5: (
        (
            "UPDATE runs SET request = json_set(request, '$.build.fallback', 'off', '$.build.shapes',"
            " (SELECT json_group_object(key, json_array(json(value)))"
            " FROM json_each(request, '$.build.shapes'))) WHERE json_valid(request)"
        ),
    ),
    6: (
        (
            "UPDATE runs SET request = json_set(request, '$.search.prune', 'waves')"
            " WHERE json_valid(request)"
        ),
    ),
    7: (
        (
            "UPDATE runs SET request = json_set(request, '$.search.forms', 'fixed')"
            " WHERE json_valid(request)"
        ),
    ),
    8: (
        (
            "UPDATE runs SET request = json_set(request, '$.build.changed_sites', json('[]'))"
            " WHERE json_valid(request)"
        ),
    ),
}
"""The SQL that turns the tables of a schema into those of the next."""


class StoreError(WpkError):
    """The tuning store cannot be read or written, or does not hold what was asked for."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the store; make it first where there is none, but never change a file that is no store.

    Raises:
        StoreError: The file is damaged, of another program or version, or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path, str(error)) from error
    with guarded(path):
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            fresh = _is_fresh(connection, path)
            _write_ahead(connection, path)
            connection.execute("PRAGMA synchronous = FULL")  # committed survives a power cut
            connection.execute("PRAGMA foreign_keys = ON")
            if fresh:
                _create(connection, path)
            _migrate(connection)
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Turn what SQLite finds wrong with the file into errors in words; bugs pass through.

    Raises:
        StoreError: The file is damaged, locked, full or not writable.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        # Some errors of Python's own wrapper carry no code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise damaged(path, str(error)) from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreError(
                f"tuning store {path} was locked by another process for {BUSY_SECONDS:g} s",
                fix="wait for the other wpk to finish, or end it if it hangs; nothing was lost",
            ) from error
        unusable = (
            sqlite3.SQLITE_FULL,
            sqlite3.SQLITE_READONLY,
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_PERM,
        )
        if code in unusable:
            raise _unusable(path, str(error)) from error
        raise


@contextmanager
def transaction(connection: sqlite3.Connection, *, writes: bool) -> Iterator[None]:
    """Execute all of the block or nothing; a writer waits for its turn before the block, not within it."""
    try:
        connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def damaged(path: Path, what: str) -> StoreError:
    """Return the error for a store that cannot be trusted; the file is left as it is."""
    return StoreError(
        f"tuning store {path} is damaged: {what}",
        fix="move the file away with those beside it that end in -wal and -shm, and import the "
        "last export; wpk does not overwrite it",
    )


def _unusable(path: Path, what: str) -> StoreError:
    return StoreError(
        f"tuning store {path} cannot be used: {what}",
        fix="free some space, or name a file on a local disk that you may write to with --cache",
    )


def _is_fresh(connection: sqlite3.Connection, path: Path) -> bool:
    """Tell whether there is nothing in the file yet; this is asked before anything in it is changed."""
    tables, application = _contents(connection)
    if tables and application != APPLICATION:
        raise StoreError(
            f"{path} is no tuning store: it is an SQLite file of another program",
            fix="name another file with --cache",
        )
    return not tables


def _contents(connection: sqlite3.Connection) -> tuple[int, int]:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return tables, application


def _write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Let readers and a writer work at once.

    Of two processes that make the change together, SQLite refuses one at once, without waiting.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)
    if mode != "wal":
        raise _unusable(path, f"its disk supports no write-ahead log, only {mode!r}")


def _create(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection, writes=True):
        if not _is_fresh(connection, path):
            return  # another process made it while this one waited
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring older tables up to date, once, whoever else opens the file."""
    if _version(connection) not in _MIGRATIONS:
        return
    with transaction(connection, writes=True):
        while (version := _version(connection)) in _MIGRATIONS:
            for statement in _MIGRATIONS[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if version != SCHEMA:
        raise StoreError(
            f"tuning store {path} has schema {version}, this wpk reads and writes {SCHEMA}",
            fix="name another file with --cache, or use the wpk that wrote this one",
        )
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise damaged(path, verdict)
