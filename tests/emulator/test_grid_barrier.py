"""Cooperative launches: all blocks run at once and wait for each other; faults planted in that are seen."""

from pathlib import Path

import numpy as np
import pytest
from support.faults.planter import Fault, drop, inlined
from support.launches.on_arrays import guarded, launch_on_arrays

from wpk.emulator import CHECKING, FAST, EmulatorError, Mode
from wpk.emulator.build import compile_unit
from wpk.kernel_source import KernelSource
from wpk.launch import COOPERATIVE

KERNEL = Path(__file__).parent / "kernels" / "grid_rounds.cu"
BLOCKS, ROUNDS = 6, 5

both_modes = pytest.mark.parametrize("mode", [FAST, CHECKING], ids=["fast", "checking"])


def _run(
    mode: Mode,
    fault: Fault | None = None,
    *,
    seed: int = 0,
    attributes: tuple[str, ...] = (COOPERATIVE,),
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> bool:
    """Whether two launches gave the right sums, and left the counters zero."""
    text = KERNEL.read_text(encoding="utf-8")
    source = KernelSource("grid_rounds", fault.edit(inlined(text)) if fault else text)
    library = compile_unit(source, checking=mode.checking)
    counters = guarded(np.zeros(2, np.int32))
    right = True
    for _ in range(2):
        y = guarded(np.full((BLOCKS, 32), -1, np.int32))
        parts = guarded(np.full((2, BLOCKS, 32), -(10**6), np.int32))
        launch_on_arrays(
            library,
            source.entry,
            (BLOCKS, 1, 1),
            (32, 1, 1),
            0,
            [y, parts, counters, ROUNDS],
            mode,
            seed=seed,
            attributes=attributes,
            cluster=cluster,
        )
        right &= bool((y == _expected()[:, None]).all()) and not counters.any()
    return right


def _expected() -> np.ndarray:
    values = np.arange(BLOCKS)
    for _ in range(ROUNDS):
        values = values + np.roll(values, -1)
    return values


@both_modes
def test_every_round_finds_what_the_neighbour_wrote(mode: Mode) -> None:
    assert all(_run(mode, seed=seed) for seed in range(5))


@both_modes
def test_blocks_that_do_not_run_together_wait_for_ever(mode: Mode) -> None:
    with pytest.raises(EmulatorError, match=r"deadlock: .* wait at a barrier of the grid"):
        _run(mode, attributes=())


def test_an_arrival_that_is_missing_is_a_deadlock() -> None:
    with pytest.raises(EmulatorError, match=r"deadlock: .* wait at a barrier of the grid"):
        _run(FAST, Fault("", drop("arrived")))


def test_a_missing_wait_is_seen_in_a_random_order() -> None:
    assert not all(_run(CHECKING, Fault("", drop("waited")), seed=seed) for seed in range(5))


def test_a_missing_barrier_in_front_of_the_arrival_is_seen() -> None:
    with pytest.raises(EmulatorError, match="no barrier after a store of thread"):
        _run_often(Fault("", drop("written")))


def test_a_missing_barrier_behind_the_wait_is_seen() -> None:
    with pytest.raises(EmulatorError, match="no barrier after a store of thread"):
        _run_often(Fault("", drop("all_arrived")))


def _run_often(fault: Fault) -> None:
    for seed in range(5):
        _run(CHECKING, fault, seed=seed)


def test_counters_that_are_not_set_back_are_seen() -> None:
    assert not _run(FAST, Fault("", drop("left")))


def test_cooperative_clusters_are_not_emulated() -> None:
    with pytest.raises(EmulatorError, match="a cooperative launch of clusters is not emulated"):
        _run(FAST, cluster=(2, 1, 1))
