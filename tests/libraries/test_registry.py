"""Another library is a `Library` and a line in the registry: no room tells libraries apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.devices.dummy_gpu import DummyGpu
from support.problems.cudnn_problems import elementwise

from wpk.candidate import Configuration
from wpk.dtypes import DType
from wpk.errors import EngineError, LaunchError
from wpk.execution import BoundCall, LibraryImage
from wpk.libraries import LIBRARIES, CudaLibraries, LibraryOffer, NumpyLibraries, askable
from wpk.libraries.library import Library, Proposals
from wpk.problems import Problem
from wpk.trial_bench import GpuLease, Offers

ADD = elementwise(DType.FP16)["add"]
FIRST, SECOND = (("tile", 1),), (("tile", 2),)


@dataclass
class Twice:
    """A candidate that is made ready unless it is the second."""

    configuration: Configuration
    library: str = "Twin 1.0"
    name: str = "tile"
    layout: str | None = None
    workspace_bytes: int = 64
    steps: int = 1
    called: list[tuple[tuple[int, ...], int, int]] = field(default_factory=list)

    def prepare(self) -> str | None:
        return "the tile is too large" if self.configuration == SECOND else None

    def add_step(self) -> None:
        self.steps += 1

    def run(self, pointers: Sequence[int], workspace: int, stream: int) -> None:
        self.called.append((tuple(pointers), workspace, stream))


@dataclass
class OpenTwin:
    """On a GPU."""

    version: str = "1.0"
    closed: list[str] = field(default_factory=list)
    made: list[Twice] = field(default_factory=list)

    def offer(self, problem: Problem) -> Proposals:
        return Proposals((Twice(FIRST), Twice(SECOND), Twice(FIRST)), ("no third tile",))

    def candidate(self, problem: Problem, configuration: Configuration) -> Twice:
        self.made.append(Twice(configuration))
        return self.made[-1]

    def close(self) -> None:
        self.closed.append(self.version)


class Twin(Library):
    """A library beside cuDNN."""

    name = "Twin"

    def __init__(self, opened: OpenTwin) -> None:
        self.opened = opened

    def why_not(self, problem: Problem) -> str | None:
        return None

    def constant_layout(self, problem: Problem, configuration: Configuration) -> str | None:
        return None

    def recipe(self, problem: Problem, configuration: Configuration) -> bytes:
        return b""

    def requirement(self, version: str) -> str:
        return f"twin=={version}"

    def open(self, device: Any) -> OpenTwin:
        return self.opened


class Gpu:
    name, work_stream = "a GPU", 7


GPU: Any = Gpu()


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> OpenTwin:
    opened = OpenTwin()
    monkeypatch.setitem(LIBRARIES, "Twin", Twin(opened))
    return opened


def image(configuration: Configuration, version: str = "1.0") -> LibraryImage:
    return LibraryImage("Twin", version, ADD, configuration)


def test_every_library_is_asked_for_every_problem(twin: OpenTwin) -> None:
    assert askable(ADD) == ("cuDNN", "Twin")
    process: Any = lambda: DummyGpu(lambda works, regions: (1e-6,), engines=1)  # noqa: E731
    with GpuLease(process) as lease, Offers(lease, [ADD]) as offers:
        assert [each.library for each in offers.of(ADD)] == ["cuDNN", "Twin"]


def test_a_gpu_offers_prepares_and_unloads_it(twin: OpenTwin) -> None:
    libraries = CudaLibraries()
    offer = libraries.offer("Twin", ADD, GPU)
    assert offer == LibraryOffer("Twin", "1.0", (FIRST, SECOND), ("no third tile",))
    assert libraries.load(image(FIRST), GPU) == 64
    with pytest.raises(EngineError, match=r"Twin 1\.0 does not prepare tile on a GPU: the tile is"):
        libraries.load(image(SECOND), GPU)
    with pytest.raises(EngineError, match=r"calls Twin 0\.9, and Twin 1\.0 is installed") as caught:
        libraries.load(image(FIRST, "0.9"), GPU)
    assert "twin==0.9" in caught.value.fix
    libraries.close()
    assert twin.closed == ["1.0"]


def test_an_implementation_is_told_of_each_step(twin: OpenTwin) -> None:
    libraries = CudaLibraries()
    for _ in range(3):
        assert libraries.load(image(FIRST), GPU) == 64
    (candidate,) = twin.made
    assert candidate.steps == 3


def test_no_call_has_less_scratch_memory_than_it_asks_for(twin: OpenTwin) -> None:
    """A plan says how much was measured; a library that was made anew may ask for more, a plan may lie."""
    libraries = CudaLibraries()
    libraries.load(image(FIRST), GPU)
    name = image(FIRST).digest
    for size in (0, 63):
        with pytest.raises(LaunchError, match=f"tile asks for 64 bytes of scratch memory, {size} "):
            libraries.call(BoundCall(name, (256, 512), 768, size), GPU)
    libraries.call(BoundCall(name, (256, 512), 768, 64), GPU)
    (candidate,) = twin.made
    assert candidate.called == [((256, 512), 768, 7)]


def test_a_cpu_executes_what_it_knows_and_nothing_else(twin: OpenTwin) -> None:
    del twin
    assert NumpyLibraries().load(image(FIRST), None) == 0
    unknown = LibraryImage("Nobody", "1.0", ADD, FIRST)
    with pytest.raises(
        EngineError, match="there is no library 'Nobody', only cuDNN, TensorRT, Twin"
    ):
        NumpyLibraries().load(unknown, None)
