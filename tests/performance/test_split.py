"""Where the models split a reduction among blocks, and where they leave it whole."""

from typing import Any

import numpy as np
import pytest
from subjects import problems

from wpk.dtypes import ASKED, Precision
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Convolution, Matmul
from wpk.schedules.registry import TEMPLATE_OF, TEMPLATES
from wpk.search.models.static_search import shortlist_all
from wpk.targets.registry import find_target

H200 = find_target("h200")


def convolution(precision: Precision, channels: int, size: int, batch: int) -> Convolution:
    """ResNet's 3 x 3 with bias and ReLU, channels last."""
    return problems.convolution(
        channels, size=size, n=batch, precision=precision, bias=precision.storage, relu=True
    )


def product(precision: Precision, m: int, n: int, k: int) -> Matmul:
    """Rows times a constant matrix."""
    return problems.matmul(m, n, k, precision=precision)


def chosen_split(problem: Convolution | Matmul) -> int:
    """Parts in the schedule that all templates' estimates put first."""
    ranked = [each for s in shortlist_all(problem, TEMPLATES, H200).templates for each in s.ranked]
    best = min(ranked, key=lambda each: each.estimate)
    return dict(best.schedule.parameters()).get("split", 1)


@pytest.mark.parametrize("precision", list(ASKED))
def test_what_leaves_most_of_the_gpu_idle_is_split(precision: Precision) -> None:
    assert chosen_split(convolution(precision, 512, 7, 1)) > 1
    assert chosen_split(convolution(precision, 256, 14, 1)) > 1
    assert chosen_split(product(precision, 32, 1000, 4096)) > 1


@pytest.mark.parametrize("precision", list(ASKED))
def test_of_one_row_threads_of_a_block_share_the_reduction(precision: Precision) -> None:
    assert chosen_split(product(precision, 1, 1000, 4096)) == 1


@pytest.mark.parametrize("precision", list(ASKED))
def test_what_fills_the_gpu_stays_whole(precision: Precision) -> None:
    assert chosen_split(convolution(precision, 64, 56, 32)) == 1
    assert chosen_split(product(precision, 8192, 4096, 1024)) == 1


CASES = [
    ("conv_mma", convolution(Precision.FP16, 512, 7, 1)),
    ("conv_simt", convolution(Precision.FP32, 512, 7, 1)),
    ("gemm_mma", product(Precision.BF16, 128, 768, 768)),
    ("gemm_simt", product(Precision.FP32, 128, 768, 768)),
]


@pytest.mark.parametrize(("name", "problem"), CASES)
def test_parts_share_the_steps_and_move_their_sums(name: str, problem: Any) -> None:
    template = TEMPLATE_OF[name]
    _, columns = template.space(problem, H200)
    whole = {**columns, "split": np.ones_like(columns["split"])}
    parts = columns["split"].astype(np.float64)
    work, alone = (template.work(problem, each, H200) for each in (columns, whole))
    tile = (columns["block_m"] * columns["block_n"]).astype(np.float64)
    np.testing.assert_array_equal(work.blocks, alone.blocks * parts)
    np.testing.assert_array_equal(work.steps, np.ceil(alone.steps / parts))
    # Every part is written once and read once, in fp32; the tile itself is stored once.
    split = parts > 1
    np.testing.assert_array_equal(work.combined_bytes, np.where(split, 4 * tile * parts, 0.0))
    stored = work.store_bytes * parts - np.where(split, 4 * tile * parts, 0.0)
    np.testing.assert_allclose(stored, alone.store_bytes, rtol=1e-12)


@pytest.mark.parametrize(("name", "problem"), CASES)
def test_meeting_costs_time(name: str, problem: Any) -> None:
    """The same blocks and steps take longer where they meet afterwards."""
    template, limit = TEMPLATE_OF[name], bound(problem, H200)
    _, columns = template.space(problem, H200)
    rows = np.flatnonzero(columns["split"] == 4)
    work = template.work(problem, {n: v[rows] for n, v in columns.items()}, H200)
    unmet = type(work)(**{**vars(work), "combined_bytes": 0.0})
    assert (estimate(work, limit, H200) > estimate(unmet, limit, H200)).all()
