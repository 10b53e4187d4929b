"""The extension of PUL: tensor cores, L2, occupancy, padding."""

from collections.abc import Callable

import numpy as np
import pytest

from wpk.dtypes import Precision
from wpk.performance.extension import extended_pul
from wpk.performance.occupancy import resident_blocks
from wpk.performance.work import Work
from wpk.targets.registry import find_target

H200 = find_target("h200")
A100 = find_target("a100")
Make = Callable[..., Work]


def test_the_peak_is_that_of_the_unit_used(make_work: Make) -> None:
    # 1e6 / 32e3 bytes = 31.25 operations a byte; L2 gives 1.01376e13 bytes a second.
    ordinary = extended_pul(make_work(), 1.0, H200).l2_ratio
    tensor = extended_pul(make_work(unit=Precision.FP16), 1.0, H200).l2_ratio
    assert ordinary == 1.0
    assert tensor == pytest.approx([31.25 * 5120 * 1.98e9 / 989.4e12])


def test_other_warps_hide_latency(make_work: Make) -> None:
    # 290 loads of 29 cycles: 8410 cycles; 100 operations a thread take a scheduler
    # 100 * 32 / 256 * 4 = 50 cycles a warp. One block of 4 warps leaves one warp a scheduler.
    # The shared memory's port is busy for 290 cycles of each warp, the unit for 12.5.
    one = extended_pul(make_work(thread_loads=290, thread_flops=100, blocks=132), 1.0, H200)
    assert one.hide_ratio == pytest.approx([50 / 8410], rel=1e-2)
    many = extended_pul(make_work(thread_loads=290, thread_flops=100, blocks=132 * 16), 1.0, H200)
    assert many.hide_ratio == pytest.approx([12.5 / 290], rel=1e-2)  # now the port is the limit


def test_padding_lowers_the_score(make_work: Make) -> None:
    work = make_work(blocks=132, block_flops=1e6)
    assert extended_pul(work, 66e6, H200).useful_ratio == pytest.approx([0.5])
    assert extended_pul(work, 264e6, H200).useful_ratio == 1.0


def test_copies_are_scored_by_the_elements_they_move(make_work: Make) -> None:
    work = make_work(block_flops=0, thread_flops=0, blocks=[1, 132], thread_loads=0)
    score = extended_pul(work, 0.0, H200).score
    assert 0 < score[0] < score[1] <= 1
    # So too where the template counts an operation for each element and the problem none.
    counted = make_work(block_flops=[1e6, 2e6], blocks=132, thread_loads=0)
    assert extended_pul(counted, 0.0, H200).useful_ratio.tolist() == [1.0, 0.5]


def test_a_block_that_fits_no_sm_scores_zero(make_work: Make) -> None:
    work = make_work(registers=[255, 256, 64, 64], threads=[256, 256, 1024, 2048])
    assert extended_pul(work, 1.0, H200).fit_ratio.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("given", "resident"),
    [
        ({"threads": 256, "registers": 32}, 8),  # 2048 threads
        ({"threads": 32, "registers": 16}, 32),  # blocks
        ({"threads": 256, "registers": 128}, 2),  # 65536 / (128 * 256)
        ({"threads": 256, "registers": 129}, 1),  # rounded up to 136
        ({"threads": 128, "registers": 32, "shared_bytes": 75 * 1024}, 3),  # 228 / 76 KiB
        ({"threads": 128, "registers": 32, "shared_bytes": 227 * 1024}, 1),
        ({"threads": 128, "registers": 32, "shared_bytes": 228 * 1024}, 0),
        ({"threads": 40, "registers": 255}, 4),  # two warps: 65536 / (256 * 64)
    ],
)
def test_occupancy_is_the_least_that_a_resource_allows(
    make_work: Make, given: dict[str, int], resident: int
) -> None:
    assert resident_blocks(make_work(**given), H200) == resident


def test_a_grid_of_small_blocks_leaves_schedulers_idle(make_work: Make) -> None:
    # One warp a block: one block an SM feeds one of four schedulers; four blocks feed them all.
    work = make_work(blocks=[132, 264, 132 * 4, 132 * 32], threads=32, registers=32)
    assert extended_pul(work, 1.0, H200).feed_ratio.tolist() == [0.25, 0.5, 1.0, 1.0]


def test_stages_and_other_blocks_hide_global_latency(make_work: Make) -> None:
    # 1e6 operations in 10 steps: 390.7 cycles a step, against 500 + 390.7 + 30 of latency.
    busy = 1e5 / (66.9e12 / 132 / 1.98e9)
    work = make_work(stages=[1, 2, 3, 1], blocks=[132, 132, 132, 264])
    expected = [busy / (530 + busy), busy * 2 / (530 + busy), 1.0, 2 * busy / (530 + busy)]
    assert extended_pul(work, 1.0, H200).fetch_ratio == pytest.approx(np.minimum(1, expected))


def test_every_factor_lies_between_0_and_1(make_work: Make) -> None:
    random = np.random.default_rng(7)
    drawn = {
        "blocks": random.integers(1, 10_000, 500),
        "threads": 32 * random.integers(1, 33, 500),
        "registers": random.integers(16, 300, 500),
        "shared_bytes": random.integers(0, 250_000, 500),
        "thread_loads": random.integers(0, 10_000, 500),
        "block_transactions": random.integers(0, 10_000, 500),
    }
    for target in (A100, H200):
        factors = extended_pul(make_work(**drawn), 1e8, target, random.uniform(1, 32, 500))
        for values in (*vars(factors).values(), factors.score):
            assert ((values >= 0) & (values <= 1)).all()


def test_the_worst_of_the_limits_that_act_at_once_decides(make_work: Make) -> None:
    factors = extended_pul(make_work(blocks=66, thread_loads=2000, threads=64), 1e9, H200)
    sm = min(factors.hide_ratio[0], factors.feed_ratio[0] * factors.fetch_ratio[0])
    assert factors.score == pytest.approx([min(factors.l2_ratio[0], 0.5 * sm)])


def test_idle_sms_leave_the_others_more_of_l2(make_work: Make) -> None:
    # Half the SMs work at most at half the peak, which half of L2's bandwidth feeds.
    work = make_work(blocks=66, block_flops=1e8, block_transactions=1e8 / 32 * 1.01376e13 / 66.9e12)
    factors = extended_pul(work, 1e12, H200)
    assert factors.l2_ratio == pytest.approx([1.0], rel=1e-6)
    starved = extended_pul(
        make_work(blocks=66, block_flops=1e8, block_transactions=2 * work.block_transactions[0]),
        1e12,
        H200,
    )
    assert starved.l2_ratio == pytest.approx([0.5], rel=1e-6)
    assert starved.score == pytest.approx(factors.score, rel=0.05)
