"""Blocks that count their arrivals: the last one finds what all wrote, and faults planted in it are seen."""

from pathlib import Path

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, inlined
from support.launches.on_arrays import guarded, launch_on_arrays

from wpk.emulator import CHECKING, FAST, EmulatorError, Mode
from wpk.emulator.build import compile_unit
from wpk.kernel_source import KernelSource

KERNEL = Path(__file__).parent / "kernels" / "split_sum.cu"
BLOCKS, ROWS = 7, 100

both_modes = pytest.mark.parametrize("mode", [FAST, CHECKING], ids=["fast", "checking"])


WAYS = "split_sum", "split_sum_by_flag"


@pytest.fixture(name="way", params=WAYS)
def fixture_way(request: pytest.FixtureRequest) -> str:
    """The name of the kernel: threads learn by a vote, or by a flag."""
    return str(request.param)


def _source(way: str, fault: Fault | None = None) -> KernelSource:
    """The kernel, with a fault in it or in its headers."""
    text = KERNEL.read_text(encoding="utf-8")
    return KernelSource(way, fault.edit(inlined(text)) if fault else text)


def _run(source: KernelSource, mode: Mode, launches: int = 1, seed: int = 0) -> bool:
    """Whether every launch gave the right sums and left the counter zero."""
    library = compile_unit(source, checking=mode.checking)
    x = guarded(np.random.default_rng(seed).integers(-9, 9, (ROWS, 64)).astype(np.float32))
    counter = guarded(np.zeros(1, np.int32))
    right = True
    for _ in range(launches):
        y, parts = (guarded(np.full(n, np.nan, np.float32)) for n in (64, BLOCKS * 64))
        arguments = [x, y, parts, counter, ROWS]
        launch_on_arrays(
            library, source.entry, (BLOCKS, 1, 1), (64, 1, 1), 4, arguments, mode, seed=seed
        )
        right &= np.array_equal(y, x.sum(axis=0)) and not counter.any()
    return right


@both_modes
def test_the_last_block_finds_what_all_wrote_launch_after_launch(way: str, mode: Mode) -> None:
    for seed in range(5):
        assert _run(_source(way), mode, launches=3, seed=seed)


@both_modes
def test_a_counter_that_is_not_set_back_is_seen(way: str, mode: Mode) -> None:
    assert not _run(_source(way, Fault("", drop("counter_reset"))), mode)


@both_modes
def test_counting_one_arrival_too_few_is_seen(way: str, mode: Mode) -> None:
    fault = Fault("", change("arrivals_counted", "arrivals - 1", "arrivals - 2"))
    assert not _run(_source(way, fault), mode)


def test_a_missing_fence_is_seen_when_checking(way: str) -> None:
    source = _source(way, Fault("", drop("writes_published")))
    with pytest.raises(EmulatorError, match="there is no __threadfence after a store"):
        _run(source, CHECKING)


def test_a_missing_barrier_is_seen_in_a_random_order(way: str) -> None:
    source = _source(way, Fault("", drop("writes_done")))
    with pytest.raises(EmulatorError, match="no barrier after a store of thread"):
        _run_often(source, CHECKING)


def _run_often(source: KernelSource, mode: Mode) -> None:
    """In several orders: a missing barrier shows where another thread is ahead of the one that counts."""
    for seed in range(8):
        _run(source, mode, seed=seed)
