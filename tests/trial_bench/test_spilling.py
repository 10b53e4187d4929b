"""A kernel that spills registers is not measured: it can never be chosen."""

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from support.devices.dummy_gpu import DummyGpu
from support.plans.candidates import kernel
from support.problems.fused_convolutions import fused_convolution

from wpk.build import Compilation, CompilePool, KernelCache
from wpk.kernel_source import KernelSource
from wpk.phases import Phases
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.search.store.records import Stage
from wpk.targets.registry import find_target
from wpk.trial import Regime, Status, Trial
from wpk.trial_bench.bench import Bench
from wpk.trial_bench.compile_ahead import CompileAhead
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.odd_case import odd_case
from wpk.trial_bench.odd_shapes import OddShapes
from wpk.trial_bench.request import Request
from wpk.trial_bench.trials import TrialRunner

H200 = find_target("h200")
MMA = MmaSchedule(block_m=32, block_n=32, block_k=32, warps_m=1, warps_n=1, stages=2)


class Spilling:
    """Compiles, and says that a thread spills so many bytes."""

    def __init__(self, pool: CompilePool, stored: int) -> None:
        self._pool, self._stored = pool, stored

    def submit(self, source: KernelSource) -> Future[Compilation]:
        done = self._pool.submit(source).result()
        assert done.kernel is not None
        resources = replace(done.kernel.resources, spill_store_bytes=self._stored)
        said: Future[Compilation] = Future()
        said.set_result(replace(done, kernel=replace(done.kernel, resources=resources)))
        return said


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[CompilePool]:
    with CompilePool(H200.arch, cache=KernelCache(tmp_path), workers=1) as pool:
        yield pool


def measured(pool: CompilePool, stored: int) -> Trial:
    problem = fused_convolution(c=32, k=32, size=8)
    case = odd_case(problem)
    assert case is not None
    request = Request(problem, kernel("conv_mma", MMA.parameters()), Stage.SEARCH, Regime.WARM)
    lease = GpuLease(lambda: DummyGpu(lambda *_: (1e-6,)))  # type: ignore[arg-type, return-value]
    with CompileAhead(H200, Spilling(pool, stored).submit) as ahead, lease:
        runner = TrialRunner(lease, {problem: case}, Regime.WARM)
        (trial,) = Bench(ahead, runner, OddShapes(H200, lease, ahead), Phases()).measure([request])
    return trial


def test_one_that_spills_is_rejected_and_says_how_much(pool: CompilePool) -> None:
    trial = measured(pool, stored=24)
    assert trial.status is Status.REJECTED
    assert trial.detail == "wpk_conv_mma spills registers: 24 bytes a thread stored, 0 loaded"
    assert not trial.seconds


def test_one_that_does_not_is_measured(pool: CompilePool) -> None:
    assert measured(pool, stored=0).status is Status.OK
