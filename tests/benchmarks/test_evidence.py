"""The script of all evidence: rows, results that stay, several processes. The rows need a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import evidence
import pytest
from rows.base import Context, Outcome, Row, RowError
from rows.catalogue import MODULES, all_rows
from rows.machine import machine
from rows.result_file import ResultFile
from rows.spread import Seat
from rows.trials import FILE
from support.plans.stored_trials import write_trials

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "evidence.py"


def run(tmp_path: Path, *options: str) -> int:
    paths = ["--store", str(tmp_path / "store"), "--output", str(tmp_path / "results.json")]
    return evidence.main(["--only", "bounds", *paths, "--commit", "abc", *options])


def record(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "results.json").read_text())["rows"]["bounds"]
    return found


def measure(_context: Context) -> Outcome:
    raise AssertionError("rows of this name are measured by the test")


def write_results(path: Path, **rows: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"schema": 1, "rows": rows}))
    return path


def test_every_row_has_a_name_of_its_own() -> None:
    assert sum(len(module.rows()) for module in MODULES) == len(all_rows())


def test_the_script_lists_its_rows_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--list", "--only", "mixed.*", "faults"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert len(names) == 4 * 2 * 2 + 1
    assert "mixed.distilbert.fp16.b32" in names
    assert names[-1] == "faults"


def test_rows_are_begun_in_the_order_in_which_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {name: Row(name, "", measure) for name in ("a.1", "a.2", "b", "c", "last.1", "d")}
    rows["last.1"] = replace(rows["last.1"], is_last=True)
    monkeypatch.setattr(evidence, "all_rows", lambda: rows)
    begun: list[str] = []
    last_of_a, both = threading.Event(), threading.Barrier(2)

    def measure_apart(row: Row, context: Context, seat: Seat, _stop: Any) -> Outcome:
        assert context.since == "1234567"
        begun.append(row.name)
        if len(begun) <= both.parties:
            both.wait(60)  # for the one that the other GPU begins with
        if row.name == "a.2":
            last_of_a.set()
        if row.name == "c":
            assert last_of_a.wait(60)
        if row.name == "b":
            raise RowError("it died")
        return Outcome(True, "done", {"gpu": seat.gpu})

    monkeypatch.setattr(evidence, "measure_apart", measure_apart)
    since = ["--since", "1234567"]
    order = ["last.*", "c", "b", "a.*"]
    assert run(tmp_path, *since, "--gpu", "0", "1", "--only", *order) == 1  # one died
    assert begun[:2] in (["c", "b"], ["b", "c"])  # at the same time
    assert begun[2:] == ["a.1", "a.2", "last.1"]
    found = ResultFile(tmp_path / "results.json").records
    assert {n for n, r in found.items() if "error" in r} == {"b"}
    seats = {name: record["figures"]["gpu"] for name, record in found.items() if name != "b"}
    assert seats["a.1"] == seats["a.2"] != seats["c"]  # whoever is free takes what comes next
    assert run(tmp_path, *since, "--again", "--only", "d", "*") == 1
    assert begun[5:] == ["d", "a.1", "a.2", "b", "c", "last.1"]


def test_a_row_that_cannot_be_measured_is_tried_again_and_one_that_was_measured_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 1
    assert "measure other rows first" in record(tmp_path)["error"]
    write_trials(tmp_path / "store" / "somewhere" / FILE, [1.5, 3.0])
    assert run(tmp_path) == 0
    first = record(tmp_path)
    assert first["passed"]
    assert first["figures"]["trials"] == 2
    assert first["figures"]["least_multiple_of_the_bound"] == pytest.approx(1.5)
    assert (first["commit"], first["machine"]) == ("abc", machine())
    write_trials(tmp_path / "store" / FILE, [0.9])
    assert run(tmp_path) == 0
    assert record(tmp_path) == first
    capsys.readouterr()
    assert run(tmp_path, "--again") == 1
    assert not record(tmp_path)["passed"]
    assert "1 under; the least is 0.90 times its bound" in capsys.readouterr().out
    assert [path.name for path in tmp_path.glob("*results*")] == ["results.json"]


def test_stores_of_earlier_commits_are_not_opened(tmp_path: Path) -> None:
    write_trials(tmp_path / "store" / "earlier" / "bfc01fc0.store" / FILE, [0.5])
    assert run(tmp_path) == 1
    assert "measure other rows first" in record(tmp_path)["error"]
    write_trials(tmp_path / "store" / "zoo" / "earlier" / FILE, [1.5])
    assert run(tmp_path) == 0
    assert record(tmp_path)["figures"]["stores"] == 1


def test_merging_takes_what_was_measured_last(tmp_path: Path) -> None:
    old = {"passed": True, "summary": "old", "figures": {}, "seconds": 1.0, "date": "2026-01-01"}
    new = {**old, "summary": "new", "date": "2026-01-02"}
    broken = {"error": "no GPU", "seconds": 1.0, "date": "2026-01-03"}
    first = write_results(tmp_path / "1.json", a=new, b=broken, c=old)
    second = write_results(tmp_path / "2.json", a=old, b=old, c=broken)
    for order in ([first, second], [second, first]):
        results = ResultFile(tmp_path / "joined.json")
        results.merge(order)
        assert ResultFile(tmp_path / "joined.json").records == {"a": new, "b": old, "c": old}
    assert [results.is_finished(row) for row in "abcd"] == [True, True, True, False]


def test_a_merge_prints_what_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"passed": False, "summary": "too slow", "figures": {}, "seconds": 1.0, "date": "2026"}
    path = write_results(tmp_path / "1.json", **{"tuning.resnet50": row})
    output = str(tmp_path / "all.json")
    assert evidence.main(["--merge", str(path), "--output", output]) == 1
    assert "tuning.resnet50  FAILED  1  too slow" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 0, "rows": {}}'])
def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(SystemExit, match="is no file of results"):
        run(tmp_path)
    assert path.read_text() == text
