"""The commands where something is measured: runs, locks and previews. The CPU stands in for the GPU."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.devices.dummy_gpu import DummyGpu, is_library
from support.devices.gpus import H200

from wpk.device import MemoryRange
from wpk.execution import BoundLaunch, Work
from wpk.plan.plan import Plan
from wpk.plan.plan_file import read_plan
from wpk.search.loop import measuring
from wpk.search.loop.cache_folder import CacheFolder
from wpk.search.models.static_search import LEFT_OUT
from wpk.search.store.records import RunRecord, RunState
from wpk.search.store.store import TuningStore
from wpk.search.store.summary import summarize
from wpk.trial_bench.gpu_lease import GpuLease

Command = Callable[..., Any]

FEW = ("--effort", "0", "--budget", "3 trials")


class Gpu:
    """What stands in for the GPU: it can be told to be interrupted."""

    def __init__(self) -> None:
        self.measured = 0
        self.interrupt_at = -1

    def clock(self, works: Sequence[Work], regions: Sequence[MemoryRange]) -> tuple[float, ...]:
        """A library call takes 5 µs; a launch is slower the more threads its blocks have."""
        del regions
        self.measured += 1
        if self.measured == self.interrupt_at:
            raise KeyboardInterrupt
        threads = sum(work.block[0] for work in works if isinstance(work, BoundLaunch))
        seconds = 1e-6 * threads + 5e-6 * sum(map(is_library, works))
        return 0.99 * seconds, seconds, 1.01 * seconds

    def open(self) -> Any:
        return DummyGpu(self.clock, engines=2)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """This machine has an H200, as far as the commands can tell."""
    stand_in = Gpu()
    monkeypatch.setattr(measuring, "read_gpu", lambda: H200)
    monkeypatch.setattr("wpk.pipeline.from_model.GpuLease", partial(GpuLease, stand_in.open))
    return stand_in


def _plan(path: Path) -> Plan:
    return read_plan(path).plan


def _runs(folder: Path) -> tuple[RunRecord, ...]:
    with TuningStore(CacheFolder(folder).store) as store:
        return store.runs()


def _trials(folder: Path) -> int:
    with TuningStore(CacheFolder(folder).store) as store:
        return summarize(store).trials


CONVOLUTION = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 6, 5] x) => (float[1, 4, 6, 5] y) <float[4, 2, 1, 1] w = {1, 2, 3, 4, 5, 6, 7, 8}>
{ c = Conv(x, w)  y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(c) }
"""


@pytest.mark.slow
def test_a_measured_plan_is_built_again_from_its_lock_to_the_byte(
    wpk: Command,
    gpu: Gpu,
    monkeypatch: pytest.MonkeyPatch,
    write_model: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    model = write_model(CONVOLUTION)
    plan, again, lock = (tmp_path / name for name in ("a.plan", "b.plan", "a.lock"))
    result = wpk("optimize", model, "-o", plan, "--cache", tmp_path / "c", "--lock", lock, *FEW)
    assert result.code == 0, result.err
    steps = _plan(plan).steps
    assert any(step.image is not None for step in steps)
    assert not all(step.image is not None for step in steps)
    assert _plan(plan).measurement is not None
    before = gpu.measured
    monkeypatch.undo()  # from here on there is no GPU, and no library
    result = wpk("optimize", model, "-o", again, "--cache", tmp_path / "d", "--from-lock", lock)
    assert result.code == 0, result.err
    assert again.read_bytes() == plan.read_bytes()
    assert gpu.measured == before
    assert not CacheFolder(tmp_path / "d").store.exists()


@pytest.mark.slow
def test_an_interrupted_run_is_resumed_with_its_options_and_loses_no_trial(
    wpk: Command, gpu: Gpu, model: Path, tmp_path: Path
) -> None:
    cache, plan = tmp_path / "c", tmp_path / "m.plan"
    gpu.interrupt_at = 4
    without = ("--skip-template", "gemm_simt")
    options = ("--precision", "fp16", "--search", "random", "--seed", "3", *without, *FEW)
    result = wpk("optimize", model, "-o", plan, "--cache", cache, *options)
    assert result.code == 130
    assert not plan.exists()
    (run,) = _runs(cache)
    assert run.state is RunState.INTERRUPTED
    short = run.id.rpartition("-")[2]
    assert f"run {run.id}: resume with --resume {short}" in result.err
    assert f"what was measured is kept: go on with --resume {short}" in result.err
    kept = _trials(cache)
    assert kept == 3
    result = wpk("optimize", model, "-o", plan, "--cache", cache, "--resume", short)
    assert result.code == 0, result.err
    assert _plan(plan).precision == "fp16"
    funnels = _plan(plan).steps[0].evidence.funnels
    assert [each.template for each in funnels if each.refusal == LEFT_OUT] == ["gemm_simt"]
    (again,) = _runs(cache)
    assert again == replace(run, state=RunState.FINISHED)
    assert _trials(cache) > kept
    measured, trials = gpu.measured, _trials(cache)
    assert wpk("optimize", model, "-o", plan, "--cache", cache, "--resume", short).code == 0
    assert _trials(cache) == trials
    assert gpu.measured > measured  # the whole engines only: those are not kept


def test_a_run_about_something_else_is_not_resumed(
    wpk: Command, refused: Command, gpu: Gpu, model: Path, other_model: Path, tmp_path: Path
) -> None:
    cache, plan = tmp_path / "c", tmp_path / "m.plan"
    gpu.interrupt_at = 1
    assert wpk("optimize", model, "-o", plan, "--cache", cache, *FEW).code == 130
    (run,) = _runs(cache)
    resume = ("-o", plan, "--cache", cache, "--resume", run.id)
    message = refused("optimize", model, *resume, "--precision", "fp16", "--seed", "1")
    assert "--precision is fp16, the run has fp32; --seed is 1, the run has 0" in message
    message = refused("optimize", model, *resume, "--skip-template", "gemm_mma")
    assert "--skip-template is ('gemm_mma',), the run has ()" in message
    assert "the model's digest is" in refused("optimize", other_model, *resume)
    message = refused("optimize", model, "-o", plan, "--cache", cache, "--resume", "nothing")
    assert f"no run 'nothing'; its latest: {run.id}" in message
    empty = ("-o", plan, "--cache", tmp_path / "none", "--resume", run.id)
    assert "there is no run to resume" in refused("optimize", model, *empty)
    assert not (tmp_path / "none").exists()
    assert _runs(cache)[0].state is RunState.INTERRUPTED


@pytest.mark.slow
def test_only_named_operators_are_measured(
    wpk: Command, refused: Command, gpu: Gpu, model: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "m.plan"
    common = ("optimize", model, "-o", plan, "--cache", tmp_path / "c")
    assert "no operator matches 'conv_*'; there are gemm_0" in refused(*common, "--ops", "conv_*")
    assert gpu.measured == 0
    assert wpk(*common, "--ops", "gemm_*", *FEW).code == 0
    measured = [step.evidence.measurement is not None for step in _plan(plan).steps]
    assert measured == [True, False]


@pytest.mark.slow
def test_a_preview_counts_what_is_known_and_estimates_the_time_from_the_store(
    wpk: Command, gpu: Gpu, model: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "c"
    preview = ("optimize", model, "--dry-run", "--cache", cache, "--effort", "0")
    out = wpk(*preview).out
    assert "auto: up to 16 schedules to measure" in out
    assert "unknown: the tuning store has no trial of this target" in out
    assert gpu.measured == 0
    assert not cache.exists()
    assert wpk("optimize", model, "-o", tmp_path / "m.plan", "--cache", cache, *FEW).code == 0
    measured = gpu.measured
    out = wpk(*preview).out
    assert "s a trial in the tuning store; limit: 60 s" in out
    assert "auto: up to 16 " not in out
    assert gpu.measured == measured


def test_naming_operators_without_measuring_is_told(
    wpk: Command, model: Path, tmp_path: Path
) -> None:
    common = ("optimize", model, "-o", tmp_path / "m.plan", "--target", "h200")
    result = wpk(*common, "--ops", "gemm_*", "--check", "off")
    assert result.code == 0
    assert "--ops names what to measure, and nothing is measured" in result.err
