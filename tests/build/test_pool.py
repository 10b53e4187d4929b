import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
from support.devices.processes import children, interrupt, start_program
from support.devices.waiting import until

from wpk.build import CompilePool, KernelCache
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource
from wpk.process import ChildProcess
from wpk.trial import Status

pytestmark = pytest.mark.usefixtures("own_processes")

Fill = Callable[[int], KernelSource]


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "cubin")


@pytest.fixture
def pool(cache: KernelCache) -> Iterator[CompilePool]:
    with CompilePool("sm_90a", cache=cache, workers=2) as pool:
        yield pool


def test_every_source_gets_one_outcome(pool: CompilePool, fill: Fill) -> None:
    sources = [fill(value) for value in range(5)]
    outcomes = list(pool.compile([*sources, sources[0]]))
    assert {outcome.source for outcome in outcomes} == set(sources)
    assert len(outcomes) == 5
    for outcome in outcomes:
        assert outcome.status is Status.OK
        assert outcome.kernel is not None
        assert outcome.kernel.digest == outcome.source.digest
        assert not outcome.cached


def test_the_second_time_everything_comes_from_the_cache(
    pool: CompilePool, cache: KernelCache, fill: Fill
) -> None:
    sources = [fill(value) for value in range(3)]
    first = {outcome.source: outcome.kernel for outcome in pool.compile(sources)}
    started = children()
    with CompilePool("sm_90a", cache=cache) as other:
        again = list(other.compile(sources))
        assert children() == started  # nothing to compile starts no process
    assert all(outcome.cached for outcome in again)
    assert {outcome.source: outcome.kernel for outcome in again} == first


def test_progress_counts_up_to_the_number_of_kernels(pool: CompilePool, fill: Fill) -> None:
    seen: list[tuple[int, int]] = []
    sources = [fill(value) for value in range(3)]
    list(pool.compile(sources, progress=lambda done, total: seen.append((done, total))))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_kernel_that_does_not_compile_costs_only_itself(
    pool: CompilePool, fill: Fill, broken: KernelSource
) -> None:
    outcomes = {o.source.entry: o for o in pool.compile([broken, fill(1)])}
    assert outcomes["fill"].status is Status.OK
    assert outcomes["broken"].status is Status.COMPILE_FAILED
    assert outcomes["broken"].kernel is None
    assert "undeclared" in str(outcomes["broken"].error)


@pytest.fixture
def limit_of_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool's limit is for the endless kernel alone: on a busy machine it ends others, too."""
    ask = ChildProcess.ask

    def asked(self: ChildProcess, method: str, source: KernelSource, *more: Any, **how: Any) -> Any:
        limit = {} if source.entry == "endless" else {"limit_seconds": 60.0}
        return ask(self, method, source, *more, **how | limit)

    monkeypatch.setattr(ChildProcess, "ask", asked)


@pytest.mark.usefixtures("limit_of_endless")
def test_a_compile_that_hangs_costs_only_itself(
    cache: KernelCache, fill: Fill, endless: KernelSource
) -> None:
    before = children()
    sources = [endless, *(fill(value) for value in range(3))]
    with CompilePool("sm_90a", cache=cache, workers=1, limit_seconds=1.5) as pool:
        outcomes = list(pool.compile(sources))
        assert len(children() - before) == 1  # who hung was replaced
    assert [outcome.status for outcome in outcomes] == [Status.TIMED_OUT, *[Status.OK] * 3]
    assert "took longer than 1.5 s" in str(outcomes[0].error)


def test_a_compiler_that_crashes_costs_only_its_kernel(
    cache: KernelCache, fill: Fill, endless: KernelSource
) -> None:
    before = children()
    with CompilePool("sm_90a", cache=cache, workers=1) as pool:
        list(pool.compile([fill(0)]))
        (worker,) = children() - before
        killer = subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -SEGV {worker}"])
        outcomes = list(pool.compile([endless, fill(1)]))
        killer.wait()
    assert [outcome.status for outcome in outcomes] == [Status.COMPILE_FAILED, Status.OK]
    assert isinstance(outcomes[0].error, CompileError)
    assert f"crashed (signal {signal.SIGSEGV})" in str(outcomes[0].error)


def test_an_idle_worker_that_died_is_replaced(cache: KernelCache, fill: Fill) -> None:
    before = children()
    with CompilePool("sm_90a", cache=cache, workers=1) as pool:
        list(pool.compile([fill(0)]))
        (worker,) = children() - before
        os.kill(worker, signal.SIGKILL)
        time.sleep(0.2)
        (outcome,) = pool.compile([fill(1)])
    assert outcome.status is Status.OK


def test_leaving_the_pool_ends_what_is_in_flight(
    cache: KernelCache, fill: Fill, endless: KernelSource
) -> None:
    before = children()
    with CompilePool("sm_90a", cache=cache, workers=2) as pool:
        outcome = next(pool.compile([fill(0), endless]))
        assert outcome.source.entry == "fill"
    assert children() == before


def test_who_submits_need_not_wait(cache: KernelCache, fill: Fill, endless: KernelSource) -> None:
    with CompilePool("sm_90a", cache=cache, workers=2) as pool:
        hanging = pool.submit(endless)
        outcomes = [pool.submit(fill(value)).result() for value in range(2)]
        assert [outcome.status for outcome in outcomes] == [Status.OK] * 2
        assert not hanging.done()


@pytest.mark.usefixtures("limit_of_endless")
def test_what_has_not_begun_can_be_cancelled(
    cache: KernelCache, fill: Fill, endless: KernelSource
) -> None:
    with CompilePool("sm_90a", cache=cache, workers=1, limit_seconds=1.5) as pool:
        first, dropped, last = (pool.submit(each) for each in (endless, fill(0), fill(1)))
        assert dropped.cancel()
        assert first.result().status is Status.TIMED_OUT
        assert last.result().status is Status.OK
    assert cache.usage().kernels == 1


def test_closing_ends_what_was_submitted_and_the_pool_can_be_used_again(
    cache: KernelCache, fill: Fill, endless: KernelSource
) -> None:
    before = children()
    pool = CompilePool("sm_90a", cache=cache, workers=2)
    with pool:
        futures = [pool.submit(endless), pool.submit(fill(0))]
        futures[1].result()
    with pytest.raises(CancelledError):
        futures[0].result()
    assert children() == before
    with pool:
        assert pool.submit(fill(1)).result().status is Status.OK
    assert children() == before


def test_a_cache_that_cannot_be_written_costs_the_cache_and_not_the_work(
    tmp_path: Path, fill: Fill, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    with CompilePool("sm_90a", cache=KernelCache(tmp_path / "file" / "cubin")) as pool:
        assert [pool.submit(fill(n)).result().status for n in range(2)] == [Status.OK] * 2
    (record,) = caplog.records
    assert "compiled kernels are not kept" in record.getMessage()
    assert "--cache FOLDER" in record.getMessage()


def test_ctrl_c_ends_the_pool_and_its_processes(tmp_path: Path, endless: KernelSource) -> None:
    program = f"""
from pathlib import Path
from wpk.build import KernelCache
from wpk.build import CompilePool
from wpk.kernel_source import KernelSource
with CompilePool("sm_90a", cache=KernelCache(Path({str(tmp_path)!r}))) as pool:
    print("started", flush=True)
    list(pool.compile([KernelSource("endless", {endless.text!r})]))
"""
    running = start_program(program)
    until(lambda: children(running.pid))
    workers = children(running.pid)
    time.sleep(1)  # by now the compile is under way: it would go on for a minute
    interrupt(running)
    _, stderr = running.communicate(timeout=20)
    assert "KeyboardInterrupt" in stderr
    assert stderr.count("Traceback") == 1  # the workers say nothing
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def test_another_architecture_is_another_entry(cache: KernelCache, fill: Fill) -> None:
    for arch in ("sm_80", "sm_90a"):
        with CompilePool(arch, cache=cache) as pool:
            (outcome,) = pool.compile([fill(1)])
            assert not outcome.cached
            assert outcome.kernel is not None
            assert outcome.kernel.arch == arch
    assert len(list(cache.folder.iterdir())) == 2
