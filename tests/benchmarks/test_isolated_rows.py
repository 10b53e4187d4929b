"""A row that fails, dies or hangs costs itself and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rows.base import Context, Outcome, Row, RowError
from rows.isolated import StoppedError, measure_apart
from rows.spread import Seat, seats, spread

HELPERS = """
import os, subprocess, sys, time
from pathlib import Path
from rows.base import Outcome, RowError

def works(context):
    gpu = os.environ["CUDA_VISIBLE_DEVICES"]
    return Outcome(True, "done", {"gpu": gpu, "cpus": os.sched_getaffinity(0)})

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

SEAT = Seat(5, frozenset({max(os.sched_getaffinity(0))}))


@pytest.fixture(name="measure")
def fixture_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    (tmp_path / "row_helpers.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(tmp_path)
    import row_helpers  # type: ignore[import-not-found]

    def measure(name: str, seconds: float) -> Outcome:
        context = Context(tmp_path, tmp_path, time.monotonic() + seconds)
        row = Row(name, "", getattr(row_helpers, name))
        return measure_apart(row, context, SEAT, threading.Event(), grace=0.0)

    return measure


def test_what_a_row_measured_arrives(measure: Measure) -> None:
    outcome = measure("works", 30.0)
    assert (outcome.passed, outcome.summary) == (True, "done")
    assert outcome.figures == {"gpu": "5", "cpus": set(SEAT.cpus)}


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


def test_a_stopped_row_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "row_that_hangs.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(tmp_path)
    import row_that_hangs  # type: ignore[import-not-found]

    stop, context = threading.Event(), Context(tmp_path, tmp_path, time.monotonic() + 60.0)
    threading.Timer(2.0, stop.set).start()
    with pytest.raises(StoppedError):
        measure_apart(Row("hangs", "", row_that_hangs.hangs), context, SEAT, stop)


def test_every_gpu_gets_an_equal_part_of_the_cores() -> None:
    cores = os.sched_getaffinity(0)
    assert seats([]) == [Seat(None, frozenset(cores))]
    (only,) = seats([3])
    assert only == Seat(3, frozenset(cores))
    several = seats([0, 1])
    assert len({len(seat.cpus) for seat in several}) == 1
    if len(cores) > 1:
        assert not several[0].cpus & several[1].cpus


def test_jobs_are_done_one_a_seat_at_a_time() -> None:
    places = [Seat(gpu, frozenset()) for gpu in range(3)]
    busy: set[Seat] = set()
    crowded: list[Seat] = []

    def work(job: int, seat: Seat) -> int:
        if seat in busy:
            crowded.append(seat)
        busy.add(seat)
        time.sleep(0.01)
        busy.remove(seat)
        return -job

    done = sorted(spread(range(20), places, work, threading.Event()))
    assert done == [(job, -job) for job in range(20)]
    assert not crowded


def test_whoever_reads_no_further_begins_no_more_jobs() -> None:
    begun: list[int] = []
    stop = threading.Event()

    def work(job: int, _seat: Seat) -> None:
        begun.append(job)
        if job:
            assert stop.wait(20.0)

    done = spread(range(20), [Seat(0, frozenset())], work, stop)
    next(done)
    done.close()  # type: ignore[attr-defined]
    assert len(begun) <= 3


def test_the_script_ends_its_rows_when_it_is_ended(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "evidence.py"
    paths = ["--store", str(tmp_path / "store"), "--output", str(tmp_path / "results.json")]
    command = [sys.executable, str(script), "--only", "verify.tv_resnet50.dynamo.fp32", *paths]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "…" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        assert process.wait(timeout=30.0) == 130
    assert "interrupted; finished rows are kept" in said
    assert not (tmp_path / "results.json").exists()
