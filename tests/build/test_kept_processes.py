"""Processes that tests share are used again, unless they hang or have died; who gave one back has none."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.devices.kept_processes import KeptProcesses, kept_processes
from support.devices.waiting import until

from wpk.build import CompilePool, KernelCache
from wpk.emulator import FAST, GUARDED, EmulatorError, EmulatorProcess
from wpk.kernel_source import KernelSource
from wpk.process import ChildProcess
from wpk.runtime import RuntimeProcess
from wpk.trial import Status

Fill = Callable[[int], KernelSource]


@pytest.fixture
def kept() -> Iterator[KeptProcesses]:
    with kept_processes() as kept:
        yield kept


def spare(kept: KeptProcesses) -> list[ChildProcess]:
    return [each.process for waiting in kept.spare.values() for each in waiting]


def compiled(folder: Path, source: KernelSource, limit_seconds: float = 60.0) -> Status:
    """What becomes of a kernel in a pool of its own."""
    cache = KernelCache(folder)
    with CompilePool("sm_90a", cache=cache, workers=1, limit_seconds=limit_seconds) as pool:
        return pool.submit(source).result().status


def test_the_next_pool_has_the_worker_of_the_last(
    kept: KeptProcesses, tmp_path: Path, fill: Fill, broken: KernelSource
) -> None:
    assert compiled(tmp_path, fill(0)) is Status.OK
    assert compiled(tmp_path, broken) is Status.COMPILE_FAILED
    assert compiled(tmp_path, fill(1)) is Status.OK
    assert kept.started == len(spare(kept)) == 1


def test_who_hangs_or_has_died_is_not_kept(
    kept: KeptProcesses, tmp_path: Path, fill: Fill, endless: KernelSource
) -> None:
    assert compiled(tmp_path, endless, limit_seconds=1.0) is Status.TIMED_OUT
    assert not spare(kept)
    assert compiled(tmp_path, fill(0)) is Status.OK
    (worker,) = spare(kept)
    worker.kill()
    until(lambda: not worker.is_alive)
    assert compiled(tmp_path, fill(1)) is Status.OK
    assert kept.started == 3


def test_an_emulator_begins_anew_and_who_closed_one_has_none(kept: KeptProcesses) -> None:
    with EmulatorProcess(FAST) as first:
        address = first.allocate(64)
        first.fill(address, 64, 7)
        child = first._child.pid
    with EmulatorProcess(GUARDED) as second:
        assert second._child.pid == child
        with pytest.raises(EmulatorError, match="no allocation"):
            second.free(address)
        with pytest.raises(EmulatorError, match="has ended"):
            first.read(address, 64)
        first.free(address)  # as of every emulator that was closed
        assert np.isnan(second.read(second.allocate(64), 64).view(np.float32)).all()
    assert kept.started == 1


def test_an_emulator_that_was_forgotten_is_given_back(kept: KeptProcesses) -> None:
    EmulatorProcess(FAST).allocate(64)
    EmulatorProcess(FAST).allocate(64)
    assert kept.started == len(spare(kept)) == 1


def doubled(runtime: RuntimeProcess) -> float:
    (y,) = runtime.run("0", [np.full(1, 21, np.float32)])
    return float(y[0])


def test_a_runtime_has_the_models_of_its_own(kept: KeptProcesses) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) '
    texts = ("{ y = Add (x, x) }", "{ y = Neg (x) }")
    models = [onnx.parser.parse_model(head + text).SerializeToString() for text in texts]
    for model, expected in zip(models, (42, -21), strict=True):
        runtime = RuntimeProcess({"0": model})
        assert doubled(runtime) == expected
        runtime.close()
    assert kept.started == 1


def test_runtimes_at_the_same_time_are_two_and_a_death_is_not_kept(kept: KeptProcesses) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Add (x, x) }'
    ).SerializeToString()
    runtimes = [RuntimeProcess({"0": model}) for _ in range(2)]
    assert [doubled(each) for each in runtimes] == [42, 42]
    assert kept.started == len(kept.memories) == 2
    assert runtimes[0]._child is not None
    runtimes[0]._child.kill()
    for each in runtimes:
        each.close()
    assert len(spare(kept)) == len(kept.memories) == 1
    assert doubled(runtimes[0]) == 42
    assert kept.started == 2
