"""The tuning store under several processes, and under kills."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from wpk.search.store.records import RunState
from wpk.search.store.store import TuningStore

WRITER = """
import sys
from pathlib import Path
from wpk.candidate import Candidate, Maker
from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.problems import Epilogue, Matmul, Tensor
from wpk.search.store.store import TuningStore
from wpk.search.store.key import Setup, StoreKey
from wpk.trial import Regime, Status, Trial

path, writer, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
problem = Matmul(
    precision=Precision.FP32, batch=(Extent(1), 1), m=Extent(8), n=8, k=8,
    a=Tensor(DType.FP32, (0, 0, 8, 1)), b=Tensor(DType.FP32, (0, 0, 8, 1)), b_constant=True,
    y=Tensor(DType.FP32, (0, 0, 8, 1)), epilogue=Epilogue(),
)
key = StoreKey(problem, Maker("tiled", "1"), Setup("h200", "sm_90a", "nvrtc", "580"))
with TuningStore(path) as store:
    run = store.begin_run(seed=writer)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        candidate = Candidate(key.maker, (("writer", writer), ("number", number)))
        trial = Trial(candidate, Status.OK, (1e-6,))
        store.record(run.id, key, trial, Regime.COLD)
        print(number, flush=True)  # from here on it must not be lost
"""


def start(path: Path, writer: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(writer), str(count)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()[1]
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def stored(path: Path) -> dict[int, set[int]]:
    with TuningStore(path) as store, store.reading() as connection:
        rows = connection.execute("SELECT schedule FROM trials").fetchall()
    found: dict[int, set[int]] = {}
    for (schedule,) in rows:
        (_, writer), (_, number) = json.loads(schedule)
        assert number not in found.setdefault(writer, set())
        found[writer].add(number)
    return found


def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tuning.sqlite"
    writers = [start(path, writer, 150) for writer in (0, 1)]
    for writer in writers:
        go(writer)
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors
    assert stored(path) == {0: set(range(150)), 1: set(range(150))}


def test_a_kill_at_any_moment_loses_no_stored_trial(tmp_path: Path) -> None:
    path = tmp_path / "tuning.sqlite"
    moments = random.Random(5)
    told: dict[int, int] = {}
    for writer in range(4):
        process = start(path, writer, 1_000_000)
        with process:
            go(process)
            assert process.stdout is not None
            process.stdout.readline()  # it writes
            time.sleep(moments.uniform(0, 0.1))
            process.send_signal(signal.SIGKILL)
            output = (
                process.stdout.read()
            )  # communicate() would leave out what readline() read ahead
        told[writer] = len([line for line in output.splitlines(keepends=True) if line[-1] == "\n"])
    found = stored(path)
    for writer, count in told.items():
        # The kill may fall between the commit and the line that tells of it, not the other way.
        assert found[writer] == set(range(len(found[writer])))
        assert count + 1 <= len(found[writer]) <= count + 2
    with TuningStore(path) as store:
        assert {run.state for run in store.runs()} == {RunState.RUNNING}
        assert store.resume_run(store.runs()[0].id).seed == store.runs()[0].seed
