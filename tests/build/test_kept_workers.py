"""Workers that tests share are used again, unless they hang or have died."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.devices.kept_workers import KeptWorkers, keep_workers

from wpk.build import CompilePool, KernelCache
from wpk.kernel_source import KernelSource
from wpk.trial import Status

Fill = Callable[[int], KernelSource]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[KeptWorkers]:
    kept = keep_workers(monkeypatch)
    yield kept
    kept.end()


def compiled(folder: Path, source: KernelSource, limit_seconds: float = 60.0) -> Status:
    """What becomes of a kernel in a pool of its own."""
    cache = KernelCache(folder)
    with CompilePool("sm_90a", cache=cache, workers=1, limit_seconds=limit_seconds) as pool:
        return pool.submit(source).result().status


def test_the_next_pool_has_the_worker_of_the_last(
    kept: KeptWorkers, tmp_path: Path, fill: Fill, broken: KernelSource
) -> None:
    assert compiled(tmp_path, fill(0)) is Status.OK
    assert compiled(tmp_path, broken) is Status.COMPILE_FAILED
    assert compiled(tmp_path, fill(1)) is Status.OK
    assert kept.started == len(kept.spare) == 1


def test_who_hangs_or_has_died_is_not_kept(
    kept: KeptWorkers, tmp_path: Path, fill: Fill, endless: KernelSource
) -> None:
    assert compiled(tmp_path, endless, limit_seconds=1.0) is Status.TIMED_OUT
    assert not kept.spare
    assert compiled(tmp_path, fill(0)) is Status.OK
    (worker,) = kept.spare
    worker.kill()
    assert compiled(tmp_path, fill(1)) is Status.OK
    assert kept.started == 3
