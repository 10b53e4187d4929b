"""A child answers with data, within a time limit, and is gone when it did not, or when its parent is."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.devices import obedient_child
from support.devices.obedient_child import Facts
from support.devices.processes import children, start_program
from support.devices.waiting import until

from wpk.errors import EngineError
from wpk.process import ChildLostError, ChildProcess, ChildTimeoutError

LIMIT = 30.0


@pytest.fixture(name="child")
def fixture_child(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildProcess]:
    monkeypatch.setenv("PYTHONPATH", str(Path(obedient_child.__file__).parents[2]))
    child = obedient_child.start()
    yield child
    child.end()
    assert child.pid not in children()


def test_answers_are_of_the_type_asked_for(child: ChildProcess) -> None:
    facts = child.ask("facts", 1, 2**40, answer=Facts, limit_seconds=LIMIT)
    assert facts == Facts("made of words", (1, 2**40), b"\0\xff")


@pytest.mark.parametrize("size", [0, 1, 5 << 20])
def test_bytes_go_there_and_back(child: ChildProcess, size: int) -> None:
    data = os.urandom(size)
    child.ask("swap", data=memoryview(data), limit_seconds=LIMIT)
    assert child.ask("swapped", answer=bytes, size=size, limit_seconds=LIMIT) == data[::-1]


@pytest.mark.parametrize("kind", ["engine", "plan"])
def test_an_error_is_an_answer_and_the_child_goes_on(child: ChildProcess, kind: str) -> None:
    with pytest.raises(EngineError, match="it fails") as raised:
        child.ask("fail", kind, limit_seconds=LIMIT)
    assert type(raised.value) is EngineError
    assert raised.value.fix == "do not ask"
    assert child.is_alive


def test_a_time_limit_ends_the_child(child: ChildProcess) -> None:
    with pytest.raises(ChildTimeoutError):
        child.ask("sleep", 600.0, limit_seconds=1.0)
    assert not child.is_alive
    with pytest.raises(ChildLostError) as lost:
        child.ask("sleep", 0.0, limit_seconds=LIMIT)
    assert lost.value.status is None


def test_a_child_that_dies_says_how(child: ChildProcess) -> None:
    with pytest.raises(ChildLostError) as lost:
        child.ask("leave", 11, limit_seconds=LIMIT)
    assert lost.value.status == 11


def test_a_child_that_was_killed_says_so(child: ChildProcess) -> None:
    killer = threading.Timer(0.5, os.kill, (child.pid, signal.SIGSEGV))
    killer.start()
    with pytest.raises(ChildLostError) as lost:
        child.ask("sleep", 20.0, limit_seconds=LIMIT)
    killer.join()
    assert lost.value.status == -signal.SIGSEGV


class Trap:
    """What must not be unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.putenv, ("WPK_TRAP", "1"))


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (pickle.dumps(Trap()), 0),
        (b"{}", 0),
        (b'{"value": "text"}', 0),
        (b'{"value": 1}', 7),
        (b'{"error": ["EngineError"]}', 0),
        (b"[" * 100_000, 0),
        (None, 0),
    ],
    ids=["a pickle", "no value", "another type", "bytes", "half an error", "deep", "too long"],
)
def test_what_no_child_answers_ends_it(
    child: ChildProcess, header: bytes | None, size: int
) -> None:
    frame = struct.pack("<QQ", 1 << 40, 0)
    if header is not None:
        frame = struct.pack("<QQ", len(header), size) + header + bytes(size)
    with pytest.raises(ChildLostError):
        child.ask("say", frame, answer=int, limit_seconds=LIMIT)
    assert not child.is_alive


def test_a_child_ends_with_its_parent_even_while_it_is_busy(tmp_path: Path) -> None:
    folder = str(Path(obedient_child.__file__).parents[2])
    program = f"""
import sys
sys.path.insert(0, {folder!r})
import threading
from support.devices import obedient_child
from pathlib import Path
child = obedient_child.start()
child.ask("sleep", 0.0, limit_seconds=30.0)
print(child.pid, flush=True)
child.ask("touch_late", Path({str(tmp_path / "late")!r}), 20.0, limit_seconds=60.0)
"""
    running = start_program(program, PYTHONPATH=folder)
    (child,) = children(running.pid)
    time.sleep(0.5)
    running.kill()
    running.communicate()
    until(lambda: not Path(f"/proc/{child}").exists())  # it looks for its parent twice a second
    assert not (tmp_path / "late").exists()
