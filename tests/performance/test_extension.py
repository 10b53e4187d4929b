"""The extension of PUL: tensor cores, L2, occupancy, latency, padding."""

from collections.abc import Callable

import numpy as np
import pytest

from wpk.dtypes import Precision
from wpk.performance.bound import Bound
from wpk.performance.estimate import estimate
from wpk.performance.extension import extended_pul
from wpk.performance.occupancy import resident_blocks
from wpk.performance.work import Work
from wpk.targets.registry import find_target

H200 = find_target("h200")
A100 = find_target("a100")
Make = Callable[..., Work]


def test_reach_is_the_operations_at_the_peak_over_the_time_of_the_grid(make_work: Make) -> None:
    # One wave of one step: the operations take 505 cycles at most, the grid as long as it is
    # estimated to, less the launch.
    for unit, peak in ((None, 66.9e12), (Precision.FP16, 989.4e12)):
        work = make_work(unit=unit, blocks=132, block_flops=256 * 505, steps=1)
        seconds = estimate(work, Bound(0.0, "L2", 0, 0), H200) - H200.launch_seconds
        expected = 132 * 256 * 505 / peak / seconds
        assert extended_pul(work, 1.0, H200).reach_ratio == pytest.approx(expected)
        assert 0 < expected[0] < 1


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
        ({"threads": 160, "registers": 168}, 2),  # three warps on each of four schedulers, of five
        ({"threads": 160, "registers": 169}, 1),  # two: 65536 / (176 * 160) is 2.3
        ({"threads": 288, "registers": 96}, 2),  # five: of nine
        ({"threads": 288, "registers": 97}, 1),  # four
    ],
)
def test_occupancy_is_the_least_that_a_resource_allows(
    make_work: Make, given: dict[str, int], resident: int
) -> None:
    assert resident_blocks(make_work(**given), H200) == resident


def test_limits_that_do_not_bind_still_lower_the_score(make_work: Make) -> None:
    # Arithmetic decides all of them; the others wait longer, load more, or work in more steps.
    best = {"block_flops": 1e7, "blocks": 132, "steps": 10, "stages": 4, "thread_loads": 100}
    for worse in (
        {"stages": 2},
        {"thread_loads": 1000},
        {"steps": 40},
        {"block_transactions": 4000},
    ):
        scores = [
            extended_pul(make_work(**each), 1.0, H200).reach_ratio for each in (best, best | worse)
        ]
        assert 0.5 * scores[0] < scores[1] < scores[0]


def test_idle_sms_and_idle_schedulers_lower_the_score(make_work: Make) -> None:
    work = make_work(blocks=[66, 132, 133], threads=256, registers=250, block_flops=1e7)
    half, whole, one_more = extended_pul(work, 1.0, H200).reach_ratio
    assert half == pytest.approx(0.5 * whole, rel=0.01)
    assert one_more == pytest.approx(0.5 * whole, rel=0.02)
    starved = make_work(threads=[32, 128], registers=32, block_flops=1e7, thread_loads=0)
    one_warp, four_warps = extended_pul(starved, 1.0, H200).reach_ratio
    assert one_warp < 0.3 * four_warps


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
