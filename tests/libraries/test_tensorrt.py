"""TensorRT as a library, on a double of ours that computes eagerly: built, rehearsed, given memory, called anywhere."""

from __future__ import annotations

import ctypes
import importlib.machinery
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.devices.eager_engines import MEMORY, eager_module
from support.problems.described import problems

import wpk.libraries.tensorrt as library_file
from wpk.errors import EngineError, LaunchError
from wpk.libraries import LIBRARIES, askable, find_library, lay_out
from wpk.libraries.definition import define
from wpk.libraries.memory import places
from wpk.libraries.tensorrt import TensorRT, TensorRTCandidate
from wpk.problems import Problem

PROBLEMS = problems()
NAMES = ["bias residual relu fp16", "matmul", "scaled fp16", "layer", "softmaxes softmax"]


class Host:
    """A device whose memory is the host's, at multiples of 256 bytes."""

    name, work_stream = "a double (sm_00)", 7

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}

    def allocate(self, size: int) -> int:
        memory = np.full(size + 512, 0xA5, np.uint8)
        address = -(-int(memory.ctypes.data) // 256) * 256
        self.held[address] = memory
        return address

    def free(self, address: int) -> None:
        del self.held[address]

    def synchronize(self) -> None:
        pass


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    made = eager_module()
    made.__spec__ = importlib.machinery.ModuleSpec("tensorrt", None)
    monkeypatch.setitem(sys.modules, "tensorrt", made)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def copy(target: int, source: int, size: int, stream: int) -> None:
        assert stream == Host.work_stream
        ctypes.memmove(target, source, size)

    monkeypatch.setattr(library_file, "_copy", copy)
    return made


@pytest.fixture
def opened(module: Any) -> Iterator[TensorRT]:
    library: Any = TensorRT(Host())  # type: ignore[arg-type]
    yield library
    library.close()


def called(
    opened: TensorRT, problem: Problem, candidate: TensorRTCandidate, shift: int
) -> tuple[Any, Any]:
    """What a candidate writes, with operands ``shift`` bytes off, and what it should."""
    device = Host()
    *inputs, output = places(problem, candidate.layout)
    rng = np.random.default_rng(5)
    logical, pointers, held = [], [], []
    for index, place in enumerate(inputs):
        values = rng.standard_normal(place.shape).astype(place.tensor.dtype.numpy)
        memory = np.zeros(place.bytes, np.uint8)
        if index == 1 and candidate.layout is not None:
            memory = lay_out(candidate.layout, values).reshape(-1).view(np.uint8)
        else:
            place.view(memory)[...] = values
        logical.append(values)
        held.append(memory)
    held.append(np.full(output.bytes, 0xFF, np.uint8))
    for memory in held:
        pointers.append(device.allocate(memory.size + shift) + shift)
        ctypes.memmove(pointers[-1], memory.ctypes.data, memory.size)
    workspace = device.allocate(candidate.workspace_bytes)
    candidate.run(pointers, workspace, device.work_stream)
    found = np.empty(output.bytes, np.uint8)
    ctypes.memmove(found.ctypes.data, pointers[-1], found.size)
    expected = define(problem, logical)
    return output.view(found).astype(np.float64), expected.reshape(output.shape)


@pytest.mark.parametrize("shift", [0, 16])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_offered_computes_the_problem(opened: TensorRT, name: str, shift: int) -> None:
    problem = PROBLEMS[name]
    proposals = opened.offer(problem)
    assert proposals.candidates
    for candidate in proposals.candidates:
        assert candidate.prepare() is None
        assert candidate.workspace_bytes >= MEMORY
        found, expected = called(opened, problem, candidate, shift)  # type: ignore[arg-type]
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)
        again = opened.candidate(problem, candidate.configuration)
        assert again.name == candidate.name
        assert (
            find_library("TensorRT").constant_layout(problem, again.configuration) == again.layout
        )


def test_what_was_timed_is_kept(module: Any) -> None:
    device: Any = Host()
    for expected in (b"", b"+"):
        library = TensorRT(device)
        (candidate, *_) = library.offer(PROBLEMS["matmul"]).candidates
        assert candidate.prepare() is None
        library.close()
        assert module.built[-1] == expected
    assert not device.held
    path = TensorRT(device)._timings.path
    path.write_bytes(b"broken")
    library = TensorRT(device)
    assert library.offer(PROBLEMS["matmul"]).candidates[0].prepare() is None
    assert module.built[-1] == b"", "what cannot be read is begun anew"


def test_a_process_that_is_ended_loses_nothing(module: Any) -> None:
    device: Any = Host()
    for expected in (b"", b"+"):  # the first library is never closed
        assert TensorRT(device).offer(PROBLEMS["matmul"]).candidates[0].prepare() is None
        assert module.built[-1] == expected


def test_timings_that_cannot_be_written_are_told_of_once(
    module: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "wpk").write_text("no folder")
    device: Any = Host()
    library = TensorRT(device)
    for _ in range(2):
        assert library.offer(PROBLEMS["matmul"]).candidates[0].prepare() is None
    assert caplog.text.count("what TensorRT timed is not kept") == 1


def test_what_may_execute_at_the_same_time_has_contexts_of_its_own(
    module: Any, opened: TensorRT
) -> None:
    """Steps that may do so have scratch memory of their own: TensorRT allows a context one execution at a time."""
    candidate: Any = opened.offer(PROBLEMS["matmul"]).candidates[0]
    assert candidate.prepare() is None
    candidate.add_step()
    device = Host()
    sizes = [place.bytes for place in places(PROBLEMS["matmul"], candidate.layout)]
    pointers = [device.allocate(size) for size in sizes]
    one, other, third = (device.allocate(candidate.workspace_bytes) for _ in range(3))
    del module.executed[:]
    for workspace in (one, other, one, other, third):
        candidate.run(pointers, workspace, device.work_stream)
    contexts = [context for context, _ in module.executed]
    assert [memory for _, memory in module.executed] == [one, other, one, other, third]
    assert contexts[0] is contexts[2]
    assert contexts[1] is contexts[3]
    assert contexts[0] is not contexts[1]
    assert contexts[4] is contexts[0], "as measurements move from place to place"


def test_a_context_that_does_not_execute_is_a_refusal(
    module: Any, opened: TensorRT, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate: Any = opened.offer(PROBLEMS["matmul"]).candidates[0]
    assert candidate.prepare() is None

    def fail(execute: object, sizes: object) -> None:
        raise LaunchError("it fails", fix="none")

    monkeypatch.setattr(opened, "rehearse", fail)
    with pytest.raises(LaunchError, match="it fails"):
        candidate.add_step()
    again: Any = opened.candidate(PROBLEMS["matmul"], candidate.configuration)
    assert again.prepare() == "it fails"
    with pytest.raises(LaunchError, match="not prepared"):
        again.run((), 0, 7)


def test_refusals_are_words(module: Any, opened: TensorRT) -> None:
    module.refuses = True
    candidate = opened.offer(PROBLEMS["matmul"]).candidates[0]
    assert "TensorRT 10.13.3.9 built no engine" in str(candidate.prepare())
    with pytest.raises(LaunchError, match="not prepared"):
        candidate.run((), 0, 7)
    proposals = opened.offer(PROBLEMS["rms"])
    assert not proposals.candidates
    assert "no rmsnorm without" in proposals.refusals[0]
    for wrong in ((("graph", 99),), (), (("graph", 0), ("engine", 1))):
        with pytest.raises(EngineError, match="has no implementation"):
            opened.candidate(PROBLEMS["matmul"], wrong)
        with pytest.raises(ValueError, match="none of"):
            find_library("TensorRT").constant_layout(PROBLEMS["matmul"], wrong)


def test_it_takes_part_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert askable(PROBLEMS["matmul"]) == ("cuDNN", "TensorRT")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert askable(PROBLEMS["matmul"]) == ("cuDNN",)
    assert LIBRARIES["TensorRT"].requirement("10.13.3.9") == "tensorrt==10.13.3.9"


def test_tensorrt_for_rtx_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(EngineError):
        TensorRT(Host())  # type: ignore[arg-type]
