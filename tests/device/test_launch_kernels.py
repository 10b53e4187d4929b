"""The kernels of tests/gpu/test_launch_attributes.py: they compile, and are right where emulated."""

from __future__ import annotations

import numpy as np
import pytest
from support.launches import launch_kernels
from support.launches.launch_kernels import ENTRIES, THREADS, Single

from wpk.emulator import Emulator
from wpk.launch import EARLY_LAUNCH

PLACES = [(0, 0), (90, 40), (-5, -8), (3, 72), (150, 0)]


@pytest.fixture(name="cpu", scope="module")
def fixture_cpu() -> Emulator:
    return Emulator()


def check(device: Emulator, single: Single) -> None:
    device.launch(single.launch)
    seen = launch_kernels.take(device, single.address, single.expected)
    np.testing.assert_array_equal(seen, single.expected)


@pytest.mark.parametrize("entry", ENTRIES)
def test_compiles_for_sm_90(entry: str) -> None:
    assert launch_kernels.image(entry).cubin


def test_a_chain_of_early_launches_is_right_at_every_replay(cpu: Emulator) -> None:
    chain = launch_kernels.chain(cpu, blocks=7, length=4)
    assert [launch.attributes for launch in chain.launches] == [(), *[(EARLY_LAUNCH,)] * 3]
    replay = cpu.capture(chain.launches)
    for times in (1, 2, 3):
        replay.replay()
        seen = launch_kernels.take(cpu, chain.address, chain.begin)
        np.testing.assert_array_equal(seen, chain.after(times))
    assert chain.begin.size % THREADS  # the last block is not full


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_a_box_lies_as_its_swizzle_says(
    cpu: Emulator, swizzle: int, place: tuple[int, int]
) -> None:
    check(cpu, launch_kernels.box(cpu, swizzle, *place))


def test_a_moved_launch_reads_the_copy_of_its_tensor(cpu: Emulator) -> None:
    single = launch_kernels.box(cpu, 128, 3, 8)
    check(cpu, launch_kernels.moved_away(cpu, single))
    cpu.launch(single.launch)
    assert not launch_kernels.take(cpu, single.address, single.expected).any()


def test_two_swizzles_lie_differently(cpu: Emulator) -> None:
    plain, swizzled = (launch_kernels.box(cpu, swizzle, 0, 0).expected for swizzle in (0, 128))
    assert sorted(plain) == sorted(swizzled)
    assert (plain != swizzled).any()


@pytest.mark.parametrize("tap", [(0, 0), (2, 1)])
@pytest.mark.parametrize("steps", [(1, 1), (2, 2), (2, 1)])
def test_pixels_are_those_of_a_convolution(
    cpu: Emulator, steps: tuple[int, int], tap: tuple[int, int]
) -> None:
    check(cpu, launch_kernels.pixels(cpu, steps, tap))


@pytest.mark.parametrize(
    ("grid", "cluster"), [((8, 1, 1), (4, 1, 1)), ((6, 4, 2), (3, 2, 1)), ((4, 2, 4), (1, 2, 4))]
)
def test_blocks_of_a_cluster_exchange(
    cpu: Emulator, grid: tuple[int, int, int], cluster: tuple[int, int, int]
) -> None:
    check(cpu, launch_kernels.neighbours(cpu, grid, cluster))
