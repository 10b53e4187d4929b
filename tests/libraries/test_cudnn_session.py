"""Graphs go before the handle, and the handle before the device, however a run ends.

The frontend here writes down what is released and when; it is no cuDNN.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wpk.errors import LaunchError
from wpk.libraries.cudnn_session import CudnnSession, words

LOG: list[str] = []


class Graph:
    """Says when it goes; one with a cycle is only found by the garbage collector."""

    def __init__(self, name: str, cyclic: bool = False) -> None:
        self.name, self.itself = name, self if cyclic else None

    def __del__(self) -> None:
        print("graph", self.name)
        LOG.append(f"graph {self.name}")

    def refuse(self) -> None:
        local = self
        raise RuntimeError(f"[cudnn_frontend] Error: no engine for {local.name}\nmore")


class Frontend:
    """Makes and destroys one handle."""

    def create_handle(self) -> str:
        return "handle"

    def destroy_handle(self, handle: str) -> None:
        print(handle)
        LOG.append(handle)


class Context:
    """Can be entered again and again."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def settle() -> None:
    """Wait for what runs, before it is taken away."""
    LOG.append("settled")


@pytest.fixture(name="log", autouse=True)
def fixture_log() -> list[str]:
    """What was released."""
    LOG.clear()
    return LOG


@pytest.mark.parametrize("cyclic", [False, True])
def test_graphs_that_are_still_wanted_go_before_the_handle(log: list[str], cyclic: bool) -> None:
    session = CudnnSession(Frontend(), Context(), settle)
    token = session.hold(Graph("a", cyclic))
    assert token.graph.name == "a"
    session.close()
    assert log == ["settled", "graph a", "handle"]
    with pytest.raises(LaunchError, match="after its library was closed"):
        _ = token.graph
    session.close()
    assert log == ["settled", "graph a", "handle"]


def test_a_graph_goes_with_its_last_token(log: list[str]) -> None:
    session = CudnnSession(Frontend(), Context(), settle)
    first, other = session.hold(Graph("a")), session.hold(Graph("b"))
    del first
    assert log == ["graph a"]
    assert other.graph.name == "b"
    session.close()
    assert log == ["graph a", "settled", "graph b", "handle"]


def test_an_error_on_its_way_keeps_no_graph(log: list[str]) -> None:
    session = CudnnSession(Frontend(), Context(), settle)

    def work() -> None:
        token = session.hold(Graph("a"))
        try:
            token.graph.refuse()
        except RuntimeError as error:
            raise ValueError(words(error)) from error

    with pytest.raises(ValueError, match="no engine for a") as raised:
        work()
    session.close()
    assert log == ["settled", "graph a", "handle"]
    assert raised.value.__cause__ is not None  # the traceback is still there


def test_garbage_goes_in_order_too(log: list[str]) -> None:
    session = CudnnSession(Frontend(), Context(), settle)
    holder: dict[str, Any] = {"session": session, "token": session.hold(Graph("a"))}
    holder["itself"] = holder
    del session, holder
    gc.collect()
    assert [each for each in log if each != "settled"] == ["graph a", "handle"]


END = """
import importlib.util, sys, weakref
spec = importlib.util.spec_from_file_location("fakes", {path!r})
fakes = importlib.util.module_from_spec(spec)
sys.modules["fakes"] = fakes
spec.loader.exec_module(fakes)

class Device:
    pass

device = Device()
left = weakref.finalize(device, print, "device")
session = fakes.CudnnSession(fakes.Frontend(), fakes.Context(), fakes.settle)
token = session.hold(fakes.Graph("a", cyclic=True))
{end}
"""


@pytest.mark.parametrize("end", ["", "raise ValueError('numbers are wrong')", "sys.exit(3)"])
def test_the_end_of_the_interpreter_keeps_the_order(end: str) -> None:
    text = END.format(path=str(Path(__file__)), end=end)
    done = subprocess.run(
        [sys.executable, "-P", "-c", text], capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[:3] == ["graph a", "handle", "device"], done.stderr
