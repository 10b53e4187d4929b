"""Every equation of DeepCuts section 4, by hand-computed values."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from wpk.performance.pul import coef_r, gm_ratio, oitb, pul, sm_ratio, wb_ratio
from wpk.performance.work import Work
from wpk.targets.registry import find_target

V100 = find_target("v100")
H200 = find_target("h200")
Make = Callable[..., Work]


def test_oitb_is_operations_over_bytes_loaded(make_work: Make) -> None:
    # 64000 operations over 100 transactions of 32 bytes: 20 operations a byte.
    work = make_work(block_flops=64000, block_transactions=100)
    assert oitb(work, V100) == pytest.approx([20.0])


def test_gm_ratio_is_the_roofline_of_v100(make_work: Make) -> None:
    # Peak intensity 15.7e12 / 900e9 = 17.44; the paper's figure 2 reads 15.6 off a 14e12 V100.
    work = make_work(block_flops=[32 * 8.722, 32 * 17.5], block_transactions=1)
    assert gm_ratio(work, V100) == pytest.approx([0.5, 1.0], abs=1e-3)
    paper = replace(V100, peak_ordinary=14.04e12)
    assert gm_ratio(make_work(block_flops=32 * 7.8, block_transactions=1), paper) == pytest.approx(
        [0.5], abs=1e-3
    )


def test_gm_ratio_is_one_where_nothing_is_loaded(make_work: Make) -> None:
    assert gm_ratio(make_work(block_transactions=0), V100) == 1.0


def test_sm_ratio_follows_the_papers_example(make_work: Make) -> None:
    # "10 floating-point operations per shared memory load, 20 cycles, no conflicts: 0.5"
    twenty = replace(V100, shared_latency=20)
    work = make_work(thread_flops=[10, 20, 30], thread_loads=1)
    assert sm_ratio(work, twenty) == pytest.approx([0.5, 1.0, 1.0])
    assert sm_ratio(work, twenty, coef_bc=2.0) == pytest.approx([0.25, 0.5, 0.75])
    assert sm_ratio(make_work(thread_loads=0), twenty) == 1.0


@pytest.mark.parametrize(
    ("blocks", "ratio"),
    [(1, 1 / 132), (66, 0.5), (132, 1.0), (133, 133 / 264), (264, 1.0), (265, 265 / 396)],
)
def test_wb_ratio_is_the_share_of_busy_sms(blocks: int, ratio: float) -> None:
    assert wb_ratio(np.asarray([float(blocks)]), 132) == pytest.approx([ratio])


def test_wb_ratio_of_one_block_is_not_the_printed_one() -> None:
    assert wb_ratio(np.asarray([1.0]), 132)[0] == pytest.approx(0.0076, abs=1e-4)
    printed = 1 - ((1 % 132) / 132) / np.ceil(1 / 132)
    assert printed == pytest.approx(0.992, abs=1e-3)


def test_wb_ratio_equals_the_printed_form_with_the_idle_sms() -> None:
    blocks = np.arange(1.0, 1000.0)
    idle = 1 - ((-blocks % 132) / 132) / np.ceil(blocks / 132)
    assert np.allclose(wb_ratio(blocks, 132), idle, rtol=1e-14)


def test_coef_r_allows_the_limits_themselves(make_work: Make) -> None:
    limit = H200.max_shared_block
    work = make_work(threads=[1024, 1056, 1024, 32], shared_bytes=[limit, 0, limit + 1, 0])
    assert coef_r(work, H200).tolist() == [1, 0, 0, 1]


def test_pul_is_the_product_and_lies_between_0_and_1(make_work: Make) -> None:
    # GMRatio: intensity 1e6 / 32e3 = 31.25 against 66.9e12 / 4.8e12 = 13.94: 1.
    # SMRatio: 1e4 / 1000 = 10 against 29: 0.345. WBRatio: 66 / 132.
    work = make_work(blocks=66, thread_loads=1000)
    factors = pul(work, H200)
    assert factors.score == pytest.approx([10 / 29 * 0.5])


def test_pul_never_rises_with_conflicts_loads_or_transactions(make_work: Make) -> None:
    rising = np.linspace(1, 5000, 50)
    for name in ("thread_loads", "block_transactions"):
        scores = pul(make_work(**{name: rising}), H200).score
        assert (np.diff(scores) <= 0).all()
        assert scores[0] > scores[-1]
    conflicts = pul(make_work(thread_loads=np.full(32, 400)), H200, np.arange(1.0, 33.0)).score
    assert (np.diff(conflicts) < 0).all()
