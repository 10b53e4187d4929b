"""A row that fails, dies or hangs costs itself and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rows.base import Context, Outcome, Row, RowError
from rows.isolated import measure_apart

HELPERS = """
import os, subprocess, sys, time
from pathlib import Path
from rows.base import Outcome, RowError

def works(context):
    return Outcome(True, "done", {"pid": os.getpid()})

def refuses(context):
    raise RowError("there is nothing to measure")

def is_wrong(context):
    return {}["missing"]

def dies(context):
    os._exit(7)

def hangs(context):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    (context.folder / "pids").write_text(f"{os.getpid()} {child.pid}")
    time.sleep(60)
"""

Measure = Callable[[str, float], Outcome]


@pytest.fixture(name="measure")
def fixture_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    (tmp_path / "row_helpers.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(tmp_path)
    import row_helpers  # type: ignore[import-not-found]

    def measure(name: str, seconds: float) -> Outcome:
        context = Context(tmp_path, tmp_path, time.monotonic() + seconds)
        return measure_apart(Row(name, "", getattr(row_helpers, name)), context, grace=0.0)

    return measure


def test_what_a_row_measured_arrives(measure: Measure) -> None:
    outcome = measure("works", 30.0)
    assert (outcome.passed, outcome.summary) == (True, "done")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("refuses", "there is nothing to measure"),
        ("is_wrong", "KeyError: 'missing'"),
        ("dies", "exit code 7"),
    ],
)
def test_a_failing_row_says_why(measure: Measure, name: str, words: str) -> None:
    with pytest.raises(RowError, match=words):
        measure(name, 30.0)


def test_a_hanging_row_is_ended_with_its_commands(measure: Measure, tmp_path: Path) -> None:
    with pytest.raises(RowError, match="took longer"):
        measure("hangs", 3.0)
    pids = (tmp_path / "pids").read_text().split()
    deadline = time.monotonic() + 10.0
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline, pids
        time.sleep(0.05)


def _runs(pid: str) -> bool:
    """A killed grandchild may stay a zombie until init looks after it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_command_that_fails_is_quoted(tmp_path: Path) -> None:
    context = Context(tmp_path, tmp_path, time.monotonic() + 60.0)
    with pytest.raises(RowError, match=r"(?s)exit code 1 of -m wpk verify.*fix:"):
        context.wpk("verify", tmp_path / "no.plan", tmp_path / "no.onnx")


def test_a_command_ends_with_the_row(tmp_path: Path) -> None:
    context = Context(tmp_path, tmp_path, time.monotonic() + 0.3)
    with pytest.raises(RowError, match="took longer"):
        context.run(["sleep", "30"])
    with pytest.raises(RowError, match="took longer"):
        context.seconds_left()
