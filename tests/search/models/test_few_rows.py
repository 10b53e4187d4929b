"""What the models say of products of few rows beside times that were measured, and beside other templates."""

import pytest
from subjects.problems import matmul

from wpk.performance import bound
from wpk.schedules.registry import TEMPLATES
from wpk.search.models import shortlist_all
from wpk.targets.registry import find_target

H100 = find_target("h100")
MEASURED = {
    (1, 25088, 4096): 68.5,
    (1, 4096, 4096): 11.9,
    (1, 4096, 11008): 31.1,
    (4, 4096, 4096): 13.3,
}
"""Microseconds of a product of a chain there and back, by (m, k, n); benchmarks/rows/skinny.py."""

NEAR = 0.03


def _best(m: int, k: int, n: int, is_skinny: bool) -> float:
    templates = [each for each in TEMPLATES if (each.name == "gemm_skinny") == is_skinny]
    (best,) = shortlist_all(matmul(m, n, k, relu=True), templates, H100).finalists(count=1)
    return best.prediction.estimate


@pytest.mark.parametrize("sizes", MEASURED, ids=str)
def test_estimates_are_near_to_measured_times_and_below_those_of_tiles(
    sizes: tuple[int, int, int],
) -> None:
    m, k, n = sizes
    there, back = _best(m, k, n, True), _best(m, n, k, True)
    assert (there + back) / 2 == pytest.approx(MEASURED[sizes] * 1e-6, rel=NEAR)
    assert there < 0.9 * _best(m, k, n, False)


def test_a_matrix_is_expected_in_memory_where_it_is_constant() -> None:
    held = 2 * 4096 * 4096
    assert held < H100.l2_bytes
    for rows in (1, 16, 17, 64):
        limit = bound(matmul(rows, 4096, 4096), H100)
        assert limit.streamed_bytes == held
        assert limit.limiter == "L2", "the bound itself counts on the cache"
    assert bound(matmul(1, 4096, 4096, constant=False), H100).streamed_bytes == 0
