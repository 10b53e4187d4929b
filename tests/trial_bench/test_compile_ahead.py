"""What compiles ahead: in order, once, dropped when it is not needed, and over at once on errors."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from subjects.problems import matmul
from support.devices.processes import children, interrupt, start_program
from support.devices.waiting import until

from wpk.build import Compilation
from wpk.dtypes import Precision
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATES
from wpk.search.models.static_search import shortlist_all
from wpk.targets.registry import find_target
from wpk.trial import Status
from wpk.trial_bench.compile_ahead import CompileAhead, KernelOrder

TARGET = find_target("h200")


def make_product() -> Problem:
    """512 x 512 x 512 in fp32."""
    return matmul(512, 512, 512, precision=Precision.FP32)


class Compiler:
    """Begins nothing by itself: tests say what begins and how it ends."""

    def __init__(self) -> None:
        self.sources: list[KernelSource] = []
        self.futures: list[Future[Compilation]] = []

    def __call__(self, source: KernelSource) -> Future[Compilation]:
        future: Future[Compilation] = Future()
        self.futures.append(future)
        self.sources.append(source)  # last: tests wait for it, in another thread
        return future

    def finish(self) -> None:
        for source, future in zip(self.sources, self.futures, strict=True):
            if not future.done() and future.set_running_or_notify_cancel():
                error = CompileError("refused", fix="none")
                failed = Compilation(source, Status.COMPILE_FAILED, None, error, 0.1, cached=False)
                future.set_result(failed)


@pytest.fixture
def compiler() -> Compiler:
    return Compiler()


@pytest.fixture
def ahead(compiler: Compiler) -> Iterator[CompileAhead]:
    with CompileAhead(TARGET, compiler) as ahead:
        yield ahead


@pytest.fixture(scope="module")
def wanted() -> list[KernelOrder]:
    """Schedules of one kernel each, all different."""
    problem = make_product()
    finalists = shortlist_all(problem, TEMPLATES, TARGET).finalists(count=64)
    singles = [each for each in finalists if len(each.sources) == 1][:8]
    assert len({each.sources[0].digest for each in singles}) == 8
    return [KernelOrder(problem, each.candidate) for each in singles]


def test_what_is_expected_compiles_once_and_in_order(
    ahead: CompileAhead, compiler: Compiler, wanted: list[KernelOrder]
) -> None:
    ahead.expect(wanted[:3])
    ahead.expect(wanted[2:5])
    until(lambda: len(compiler.sources) == 5)
    compiler.finish()
    built = ahead.get([wanted[4], wanted[0]])
    candidates = [each.finalist.candidate for each in built]
    assert candidates == [wanted[4].candidate, wanted[0].candidate]
    assert [each.outcomes[0].source for each in built] == [compiler.sources[4], compiler.sources[0]]
    assert len(compiler.sources) == len({source.digest for source in compiler.sources}) == 5


def test_what_nobody_expected_compiles_when_it_is_needed(
    ahead: CompileAhead, compiler: Compiler, wanted: list[KernelOrder]
) -> None:
    with ThreadPoolExecutor(1) as other:
        getting = other.submit(ahead.get, wanted[:1])
        until(lambda: len(compiler.sources) == 1)
        compiler.finish()
        (built,) = getting.result()
    assert built.outcomes == (compiler.futures[0].result(),)
    assert ahead.compilations() == list(built.outcomes)


def test_what_is_dropped_is_cancelled_and_not_among_the_built(
    ahead: CompileAhead, compiler: Compiler, wanted: list[KernelOrder]
) -> None:
    ahead.expect(wanted[:4])
    until(lambda: len(compiler.sources) == 4)
    compiler.futures[1].set_running_or_notify_cancel()  # it has begun: it goes on
    ahead.drop(wanted[1:3])
    until(compiler.futures[2].cancelled)
    assert [future.cancelled() for future in compiler.futures] == [False, False, True, False]
    for place in (0, 3):
        compiler.futures[place].set_result(
            Compilation(compiler.sources[place], Status.OK, None, None, 0.1, cached=False)
        )
    assert {each.source for each in ahead.compilations()} == {
        compiler.sources[0],
        compiler.sources[3],
    }


def test_what_was_dropped_can_be_expected_again(
    ahead: CompileAhead, compiler: Compiler, wanted: list[KernelOrder]
) -> None:
    ahead.expect(wanted[:1])
    until(lambda: len(compiler.sources) == 1)
    ahead.drop(wanted[:1])
    ahead.expect(wanted[:1])
    until(lambda: len(compiler.sources) == 2)
    compiler.finish()
    assert ahead.get(wanted[:1])[0].outcomes[0].source == compiler.sources[1]


def test_an_error_of_the_cache_is_raised_where_the_kernel_is_needed(
    ahead: CompileAhead, compiler: Compiler, wanted: list[KernelOrder]
) -> None:
    ahead.expect(wanted[:2])
    until(lambda: len(compiler.sources) == 2)
    compiler.futures[1].set_exception(CompileError("the disk is full", fix="free some space"))
    compiler.finish()
    ahead.get(wanted[:1])
    with pytest.raises(CompileError, match="the disk is full"):
        ahead.get(wanted[1:2])


def test_leaving_drops_all_that_has_not_begun(
    compiler: Compiler, wanted: list[KernelOrder]
) -> None:
    with CompileAhead(TARGET, compiler) as ahead:
        ahead.expect(wanted)
        until(lambda: len(compiler.sources) >= 3)
    assert all(future.cancelled() for future in compiler.futures)


PROGRAM = """
from pathlib import Path
from wpk.build import KernelCache
from wpk.build import CompilePool
from wpk.candidate import Candidate
from wpk.schedules.registry import TEMPLATES
from wpk.search.models.static_search import shortlist_all
from wpk.targets.registry import find_target
from wpk.trial_bench.compile_ahead import CompileAhead, KernelOrder
from test_compile_ahead import make_product

target, problem = find_target("h200"), make_product()
offers = shortlist_all(problem, TEMPLATES, target).templates
wanted = [
    KernelOrder(problem, Candidate(offer.template.maker, prediction.schedule.parameters()))
    for offer in offers
    for prediction in offer.ranked
]
with CompilePool("sm_90a", cache=KernelCache(Path(FOLDER)), workers=2) as pool:
    with CompileAhead(target, pool.submit) as ahead:
        ahead.expect(wanted)
        print("started", flush=True)
        HAPPENS
"""


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        ("ahead.get(wanted)", "KeyboardInterrupt"),
        ("import time; time.sleep(600)", "KeyboardInterrupt"),
        ("raise RuntimeError('the GPU is lost')", "RuntimeError: the GPU is lost"),
    ],
    ids=["Ctrl-C while waiting", "Ctrl-C while measuring", "error"],
)
def test_whatever_ends_it_ends_every_process_at_once(
    tmp_path: Path, happens: str, said: str
) -> None:
    program = PROGRAM.replace("FOLDER", repr(str(tmp_path))).replace("HAPPENS", happens)
    folders = Path(__file__).parent, *sys.path
    running = start_program(program, PYTHONPATH=os.pathsep.join(map(str, folders)))
    if said == "KeyboardInterrupt":
        until(lambda: len(children(running.pid)) == 2)
        workers = children(running.pid)
        time.sleep(0.3)
        interrupt(running)
    else:
        workers = set()
    _, stderr = running.communicate(timeout=100)  # all kernels that it wants take longer
    assert said in stderr.splitlines()[-1]
    assert stderr.count("Traceback") == 1
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]
