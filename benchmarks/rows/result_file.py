"""The file of results: one record a row, written as a whole after every row."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SCHEMA = 1

Record = dict[str, Any]
"""``passed``, ``summary`` and ``figures``, or ``error``; and ``seconds``, ``cpus``, ``date``,
``machine``, ``command``, ``commit``."""


class ResultFile:
    """Records by row. Several processes each write a file of their own; `merge` joins them."""

    def __init__(self, path: Path) -> None:
        """Read the file, if there is one.

        Raises:
            SystemExit: It is none of this script.
        """
        self.path = path
        self.records: dict[str, Record] = {}
        if path.is_file():
            self.records = _read(path)

    def is_finished(self, row: str) -> bool:
        """Whether the row was measured; one that failed to be measured is not finished."""
        return "error" not in self.records.get(row, {"error": ""})

    def add(self, row: str, record: Record) -> None:
        """Keep a record. The file is replaced: whoever reads it sees the old one or the new one."""
        self.records[row] = record
        self._write()

    def merge(self, others: Iterable[Path]) -> None:
        """Take over the rows of other files: of one row, the latest that was measured.

        Raises:
            SystemExit: One of them cannot be read.
        """
        self.records = newest([self.records, *map(_read, others)])
        self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schema": SCHEMA, "rows": self.records}, indent=1, sort_keys=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=self.path.parent, prefix=f".{self.path.name}.", delete=False
        ) as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).chmod(0o644)
        Path(file.name).replace(self.path)


def newest(files: Iterable[Mapping[str, Record]]) -> dict[str, Record]:
    """The rows of several files: of one row, the latest that was measured."""
    found: dict[str, Record] = {}
    for records in files:
        for row, record in records.items():
            if row not in found or _rank(record) > _rank(found[row]):
                found[row] = record
    return found


def figures_of(records: Mapping[str, Record], row: str) -> dict[str, Any]:
    """What a row's record says; nothing where it was not measured."""
    figures: dict[str, Any] = records.get(row, {}).get("figures", {})
    return figures


def _read(path: Path) -> dict[str, Record]:
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} is no file of results: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise SystemExit(f"{path} is no file of results of schema {SCHEMA}")
    rows: dict[str, Record] = data["rows"]
    return rows


def _rank(record: Record) -> tuple[bool, str]:
    """Measured before failed, then by date: ISO 8601 in UTC sorts as text."""
    return "error" not in record, record["date"]
