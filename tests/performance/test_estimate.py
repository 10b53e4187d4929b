"""The estimate: never under the bound, and monotone where theory says so."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from wpk.dtypes import Precision
from wpk.performance.bound import Bound
from wpk.performance.estimate import estimate
from wpk.performance.rates import FILL_CYCLES, SYNC_CYCLES
from wpk.performance.waves import (
    ACHIEVED_L2,
    COPIED_L2,
    EARLY_BLOCK_SECONDS,
    OVERLAP,
    OVERLAP_BESIDE,
    Grids,
    l2_seconds,
)
from wpk.performance.work import Work
from wpk.targets.registry import find_target

H200 = find_target("h200")
NOTHING = Bound(0.0, "L2", 0, 0)
Make = Callable[..., Work]


def test_a_single_step_by_hand(make_work: Make) -> None:
    # One block an SM of 4 warps; 1e6 operations take 1e6 / (66.9e12 / 132 / 1.98e9) cycles; one
    # step without prefetching waits for the latency too, and the wave fills and drains.
    work = make_work(steps=1, stages=1, blocks=132, block_transactions=0, thread_loads=0)
    arithmetic = 1e6 / (66.9e12 / 132 / 1.98e9)
    waiting = FILL_CYCLES + arithmetic + SYNC_CYCLES
    step = (arithmetic**OVERLAP + waiting**OVERLAP) ** (1 / OVERLAP)
    cycles = 2 * FILL_CYCLES + step + SYNC_CYCLES
    assert estimate(work, NOTHING, H200) == pytest.approx([1.2e-6 + cycles / 1.98e9])


def test_of_two_with_the_same_worst_limit_the_one_with_smaller_others_is_faster(
    make_work: Make,
) -> None:
    work = make_work(block_flops=1e8, block_transactions=[1e4, 1e5], blocks=132 * 8)
    seconds = estimate(work, NOTHING, H200)
    assert seconds[0] < seconds[1] < 1.3 * seconds[0]


def test_stages_hide_the_latency_until_arithmetic_limits(make_work: Make) -> None:
    # 65 cycles a step of the unit and the schedulers against some 500 of latency.
    seconds = estimate(make_work(stages=[1, 2, 3, 15, 60], steps=100), NOTHING, H200)
    assert (np.diff(seconds) < 0).all()
    assert seconds[0] > 1.5 * seconds[2]
    assert seconds[3] < 1.1 * seconds[4]


def test_one_block_more_than_a_wave_costs_another(make_work: Make) -> None:
    # 255 registers * 256 threads: one block an SM.
    work = make_work(blocks=[1, 132, 133, 264], threads=256, registers=250)
    seconds = estimate(work, NOTHING, H200)
    # L2's traffic differs, nothing else.
    assert seconds[0] == pytest.approx(seconds[1], rel=0.05)
    assert seconds[2] == pytest.approx(seconds[3], rel=0.05)
    assert seconds[2] > 1.5 * (seconds[1] - H200.launch_seconds)


def test_blocks_of_an_early_launch_take_a_while_to_begin(make_work: Make) -> None:
    idle = {"block_flops": 1.0, "thread_flops": 1.0, "block_transactions": 0, "thread_loads": 0}
    few, many = (make_work(blocks=blocks, steps=1, **idle) for blocks in (132.0, 50000.0))
    seconds = [
        float(estimate(replace(work, early=np.full(1, early)), NOTHING, H200)[0])
        for work in (few, many)
        for early in (False, True)
    ]
    assert seconds[1] < seconds[0]  # few blocks gain by an early launch
    assert seconds[3] > 1.5 * seconds[2]
    assert seconds[3] >= 50000 * EARLY_BLOCK_SECONDS


def test_l2_traffic_limits(make_work: Make) -> None:
    work = make_work(
        blocks=132 * 64, threads=128, block_flops=1, block_transactions=3200, steps=1, stages=8
    )
    moved = 132 * 64 * 3200 * 32
    limit = moved / (H200.l2_bandwidth * ACHIEVED_L2)
    assert estimate(work, NOTHING, H200)[0] >= H200.launch_seconds + limit
    copied = l2_seconds(replace(work, by_warpgroups=True), H200)[0]
    assert copied == pytest.approx(limit * ACHIEVED_L2 / COPIED_L2)


@pytest.mark.parametrize(("by_warpgroups", "order"), [(False, OVERLAP), (True, OVERLAP_BESIDE)])
def test_copies_that_run_ahead_overlap_with_products(
    make_work: Make, by_warpgroups: bool, order: float
) -> None:
    """Global memory is joined as elsewhere: its latency is more than stages hide."""
    work = make_work(blocks=132 * 8, block_flops=1e8, block_transactions=1e4, steps=16, stages=4)
    grids = Grids.of(replace(work, by_warpgroups=by_warpgroups), H200)
    both = (grids.waves[0] ** order + grids.l2[0] ** order) ** (1 / order)
    assert grids.seconds[0] == pytest.approx(both)
    assert estimate(grids.work, NOTHING, H200)[0] == pytest.approx(H200.launch_seconds + both)
    read = 4e-5
    large = Bound(0.0, "global memory", 1, 0, streamed_bytes=int(read * 0.93 * 4.8e12))
    joined = (both**OVERLAP + read**OVERLAP) ** (1 / OVERLAP)
    assert estimate(grids.work, large, H200)[0] == pytest.approx(H200.launch_seconds + joined)


def test_of_twice_what_l2_holds_nothing_is_left(make_work: Make) -> None:
    """A sweep evicts what the next one wants first: half of L2 beyond it costs a whole one."""
    size, bandwidth = H200.l2_bytes, 0.93 * H200.global_bandwidth
    seconds = [
        float(estimate(make_work(), Bound(0.0, "L2", int(size * share), 0), H200)[0])
        for share in (1.0, 1.5, 2.0, 4.0)
    ]
    nothing = float(estimate(make_work(), Bound(0.0, "L2", 0, 0), H200)[0])
    assert seconds[0] == nothing
    for each, swept in zip(seconds[1:], (1.0, 2.0, 4.0), strict=True):
        assert 0 < each - swept * size / bandwidth < 2 * nothing


def test_what_exceeds_l2_crosses_global_memory(make_work: Make) -> None:
    large = Bound(0.0, "global memory", 4_464_000_000, 0)
    seconds = estimate(make_work(), large, H200)
    # The grid's own microseconds overlap with the millisecond of global memory.
    assert 1.2e-6 + 1e-3 <= seconds[0] < 1.001e-3 + 1.2e-6


def test_what_fits_l2_does_not(make_work: Make) -> None:
    nothing = estimate(make_work(), NOTHING, H200)
    for held in (1, H200.l2_bytes):
        assert estimate(make_work(), Bound(0.0, "L2", held, 0), H200) == nothing


def test_conflicts_and_spent_registers_never_help(make_work: Make) -> None:
    work = make_work(thread_loads=np.full(32, 2e4), blocks=1000)
    assert (np.diff(estimate(work, NOTHING, H200, np.arange(1.0, 33.0))) >= 0).all()
    assert estimate(make_work(registers=300), NOTHING, H200) == np.inf


def test_loads_are_free_of_conflicts_where_nothing_is_said_of_them(make_work: Make) -> None:
    work = make_work(thread_loads=2e4)
    plain, twice = estimate(work, NOTHING, H200, 1.0), estimate(work, NOTHING, H200, 2.0)
    assert estimate(work, NOTHING, H200) == plain < twice


@pytest.mark.parametrize(
    ("field", "nothing", "something"),
    [
        ("combined_bytes", 0.0, 4096.0),
        ("in_cluster", False, True),
        ("early", False, True),
        ("thread_slots", 0.0, 500.0),
        ("chain_cycles", 0.0, 500.0),
        ("turns", 1.0, 2.0),
        ("by_warpgroups", False, True),
        ("multicast", False, True),
    ],
)
def test_what_is_not_said_of_schedules_they_do_not_do(
    make_work: Make, field: str, nothing: float, something: float
) -> None:
    parts = {"combined_bytes": 4096.0} if field == "in_cluster" else {}
    plain, none, some = (
        estimate(make_work(**parts, **given), NOTHING, H200)
        for given in ({}, {field: nothing}, {field: something})
    )
    assert plain == none != some


def test_tensor_cores_are_faster(make_work: Make) -> None:
    plain = estimate(make_work(block_flops=1e9), NOTHING, H200)
    tensor = estimate(make_work(unit=Precision.FP16, block_flops=1e9), NOTHING, H200)
    assert tensor < plain / 5


def test_a_kernel_that_begins_early_saves_what_launching_in_a_chain_was_measured_to_cost(
    make_work: Make,
) -> None:
    late, early = estimate(make_work(early=[0, 1]), NOTHING, H200)
    assert 0.6e-6 <= late - early <= 0.9e-6


def test_no_estimate_lies_under_the_bound(make_work: Make) -> None:
    random = np.random.default_rng(3)
    work = make_work(
        blocks=random.integers(1, 100_000, 300),
        threads=32 * random.integers(1, 33, 300),
        registers=random.integers(16, 256, 300),
        block_flops=random.uniform(1, 1e8, 300),
        steps=random.integers(1, 500, 300),
        stages=random.integers(1, 8, 300),
    )
    for seconds in (0.0, 1e-6, 1e-3):
        limit = Bound(seconds, "L2", 1 << 30, 1)
        assert (estimate(work, limit, H200) >= seconds + H200.launch_seconds).all()
    # Nor under the roofline of what the blocks do, padding included.
    done = work.blocks * work.block_flops / H200.peak_ordinary
    assert (estimate(work, NOTHING, H200) >= done).all()
