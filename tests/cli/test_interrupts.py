"""Ctrl-C where `KeyboardInterrupt` alone would do harm, be lost, or not end the process."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.devices.processes import start_python

from wpk.cli import targets
from wpk.errors import EngineError

HEAD = """
import signal, sys, threading, time
from wpk.cli import interrupts
from wpk.cli.interrupts import interrupts_end_the_process
"""

IN_AN_IMPORT = """
with interrupts_end_the_process():
    try:
        import interrupted
        time.sleep(600)
    except KeyboardInterrupt:
        print(interrupted.is_over)
"""

IN_A_DESTRUCTOR = """
class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

with interrupts_end_the_process():
    try:
        Interrupted()
        time.sleep(600)
    except KeyboardInterrupt:
        print(True)
"""

AMID_A_THREADS_START = """
from concurrent.futures import ThreadPoolExecutor

class Pool(ThreadPoolExecutor):
    def _adjust_thread_count(self):
        signal.raise_signal(signal.SIGINT)
        super()._adjust_thread_count()

with interrupts_end_the_process():
    pool = Pool(1)
    try:
        pool.submit(time.sleep, 0)
        time.sleep(600)
    except KeyboardInterrupt:
        print(len(pool._threads) == 1)
"""

TWICE = """
with interrupts_end_the_process():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        signal.raise_signal(signal.SIGINT)
        print(True)
"""

A_THREAD_THAT_STAYS = """
interrupts.GRACE_SECONDS = 0.5
threading.Thread(target=time.sleep, args=(600,)).start()
with interrupts_end_the_process():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print(True, flush=True)
"""

IGNORED = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
interrupts.GRACE_SECONDS = 0.0
with interrupts_end_the_process():
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.5)
    print(True)
"""


@pytest.mark.parametrize(
    ("program", "code"),
    [
        pytest.param(IN_AN_IMPORT, 0, id="it waits for an import"),
        pytest.param(AMID_A_THREADS_START, 0, id="it waits for a thread's start"),
        pytest.param(IN_A_DESTRUCTOR, 0, id="a destructor does not lose it"),
        pytest.param(TWICE, 0, id="a second one does not interrupt the cleaning up"),
        pytest.param(A_THREAD_THAT_STAYS, 130, id="no thread keeps the process"),
        pytest.param(IGNORED, 0, id="where it is ignored it stays so"),
    ],
)
def test_an_interrupt(tmp_path: Path, program: str, code: int) -> None:
    raising = "import signal\nsignal.raise_signal(signal.SIGINT)\nis_over = True\n"
    (tmp_path / "interrupted.py").write_text(raising)
    process = start_python("-P", "-c", HEAD + program, PYTHONPATH=str(tmp_path))
    out, err = process.communicate(timeout=200)  # without an interrupt it would sleep for longer
    assert (out, process.returncode) == ("True\n", code), err
    assert err == ""


@pytest.mark.parametrize("kind", [BrokenPipeError, EngineError, ValueError])
def test_what_fails_because_of_an_interrupt_is_one(
    wpk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def run(arguments: object) -> int:
        try:
            raise KeyboardInterrupt
        finally:
            raise EngineError("lost", fix="none") if kind is EngineError else kind("lost")

    monkeypatch.setattr(targets, "run", run)
    result = wpk("targets")
    assert result.code == 130
    assert "interrupted" in result.err


OPTIMIZE = """
import sys, threading
from wpk.cli.main import main

class Witness:
    def find_spec(self, name, path=None, target=None):
        threads = {thread.name.split("_")[0] for thread in threading.enumerate()}
        beside = "wpk-reference" in threads or threading.current_thread() is not threading.main_thread()
        print("IMPORT", name, "beside" if beside else "alone", file=sys.stderr)

sys.meta_path.insert(0, Witness())
sys.exit(main(sys.argv[1:]))
"""


def test_nothing_is_imported_while_threads_may_import(model: Path, tmp_path: Path) -> None:
    command = ["optimize", model, "-o", tmp_path / "m.plan", "--target", "h200"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", OPTIMIZE, *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    imports = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("IMPORT")]
    assert ["onnxruntime", "alone"] in imports
    assert ["onnx.reference.ops", "alone"] in imports
    assert [name for name, when in imports if when == "beside"] == []
