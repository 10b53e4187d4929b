"""What launches of sm_90 have beyond a grid: clusters, early launch, tensor maps, in and out of graphs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support.launches import launch_kernels
from support.launches.launch_kernels import Chain, Single

from wpk.device import CudaDevice, bindings, step_seconds
from wpk.device.graph import checked
from wpk.device.step_times import REPLAYS
from wpk.errors import LaunchError

pytestmark = pytest.mark.gpu

BLOCKS, LENGTH = 264, 24


def holds(device: CudaDevice, chain: Chain, times: int) -> bool:
    seen = launch_kernels.take(device, chain.address, chain.begin)
    return np.array_equal(seen, chain.after(times))


def check(device: CudaDevice, single: Single, *, captured: bool) -> None:
    """The launch, or the replay of a graph of it, gives what is expected."""
    if captured:
        device.capture([single.launch]).replay()
    else:
        device.launch(single.launch)
    seen = launch_kernels.take(device, single.address, single.expected)
    np.testing.assert_array_equal(seen, single.expected)


def test_a_chain_of_early_launches_is_right(cuda: CudaDevice) -> None:
    chain = launch_kernels.chain(cuda, BLOCKS, LENGTH)
    for times in (1, 2):
        for launch in chain.launches:
            cuda.launch(launch)
        assert holds(cuda, chain, times)


def test_a_graph_of_early_launches_is_right_at_every_replay(cuda: CudaDevice) -> None:
    chain = launch_kernels.chain(cuda, BLOCKS, LENGTH)
    graph = cuda.capture(chain.launches)
    for _ in range(5):
        graph.replay()
    assert holds(cuda, chain, 5)
    for _ in range(5):
        graph.replay_on(cuda.stream)
    assert holds(cuda, chain, 10)


def test_kernels_that_do_not_wait_overtake_each_other(cuda: CudaDevice) -> None:
    """So the chain above is right because its kernels wait, not because they never overlap."""
    chain = launch_kernels.chain(cuda, BLOCKS, LENGTH, waiting=False)
    graph = cuda.capture(chain.launches)
    for _ in range(5):
        graph.replay()
    assert not holds(cuda, chain, 5)


def test_early_launches_are_programmatic_edges_of_a_graph(cuda: CudaDevice) -> None:
    chain = launch_kernels.chain(cuda, BLOCKS, LENGTH)
    driver = bindings()
    with cuda.active():
        stream = driver.CUstream(cuda.stream)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        checked("begin", driver.cuStreamBeginCapture(stream, mode))
        try:
            for launch in chain.launches:
                cuda.launch(launch)
        finally:
            graph = checked("end", driver.cuStreamEndCapture(stream))
        try:
            status, _, _, data, count = driver.cuGraphGetEdges(graph, LENGTH)
            checked("read edges", (status,))
            kinds = Counter(_number(edge.type) for edge in data[:count])
        finally:
            driver.cuGraphDestroy(graph)
    early = driver.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
    assert kinds == {int(early): LENGTH - 1}


def _number(byte: bytes | int) -> int:
    return byte if isinstance(byte, int) else int.from_bytes(byte, "little")


def test_events_between_early_launches_leave_them_right(cuda: CudaDevice) -> None:
    chain = launch_kernels.chain(cuda, BLOCKS, LENGTH)
    seconds = step_seconds(cuda, [[launch] for launch in chain.launches])
    assert len(seconds) == LENGTH
    assert min(seconds) > 0
    assert holds(cuda, chain, REPLAYS + 1)


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("place", [(0, 0), (90, 40), (-5, -8), (3, 72)])
def test_a_box_lies_as_its_swizzle_says(
    cuda: CudaDevice, swizzle: int, place: tuple[int, int], captured: bool
) -> None:
    check(cuda, launch_kernels.box(cuda, swizzle, *place), captured=captured)


@pytest.mark.parametrize("captured", [False, True])
def test_a_moved_launch_reads_the_copy_of_its_tensor(cuda: CudaDevice, captured: bool) -> None:
    single = launch_kernels.moved_away(cuda, launch_kernels.box(cuda, 128, 3, 8))
    check(cuda, single, captured=captured)


@pytest.mark.parametrize("steps", [(1, 1), (2, 2), (2, 1)])
@pytest.mark.parametrize("tap", [(0, 0), (2, 1), (1, 2)])
def test_pixels_are_those_of_a_convolution(
    cuda: CudaDevice, steps: tuple[int, int], tap: tuple[int, int]
) -> None:
    check(cuda, launch_kernels.pixels(cuda, steps, tap), captured=False)


CLUSTERS = [
    ((64, 1, 1), (8, 1, 1)),
    ((32, 3, 1), (16, 1, 1)),  # larger than what every GPU takes
    ((6, 4, 2), (3, 2, 1)),
    ((2, 4, 4), (1, 2, 2)),
]


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize(("grid", "cluster"), CLUSTERS)
def test_blocks_of_a_cluster_read_their_neighbours_shared_memory(
    cuda: CudaDevice,
    grid: tuple[int, int, int],
    cluster: tuple[int, int, int],
    captured: bool,
) -> None:
    check(cuda, launch_kernels.neighbours(cuda, grid, cluster), captured=captured)


def test_a_cluster_that_does_not_divide_the_grid_is_refused(cuda: CudaDevice) -> None:
    single = launch_kernels.neighbours(cuda, (6, 1, 1), (2, 1, 1))
    with pytest.raises(LaunchError, match=r"clusters of \(4, 1, 1\)"):
        cuda.launch(replace(single.launch, cluster=(4, 1, 1)))
    check(cuda, single, captured=False)
