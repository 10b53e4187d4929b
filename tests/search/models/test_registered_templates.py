"""Every registered template through the models: honest work, sound estimates, in time."""

import time
from typing import Any

import numpy as np
import pytest
from support.problems.products import matmul
from support.problems.registered import PROBLEMS

from wpk.dtypes import Precision
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate, least_possible
from wpk.schedules.registry import TEMPLATE_OF, TEMPLATES
from wpk.search.models.shortlist import least_estimate, shortlist
from wpk.search.models.static_search import shortlist_all
from wpk.targets.registry import find_target

H200 = find_target("h200")
PAIRS = [
    pytest.param(problem, template, id=f"{name}-{template.name}")
    for name, problem in PROBLEMS.items()
    for template in TEMPLATES
    if isinstance(problem, template.problem_type) and template.why_not(problem, H200) is None
]


@pytest.mark.parametrize(("problem", "template"), PAIRS)
def test_work_is_at_least_what_the_problem_needs(problem: Any, template: Any) -> None:
    space, columns = template.space(problem, H200)
    assert 0 < len(next(iter(columns.values()))) <= min(space, 100_000)
    work = template.work(problem, columns, H200)
    for name, values in vars(work).items():
        if isinstance(values, np.ndarray):
            assert np.isfinite(values).all(), name
            assert (values >= 0).all(), name
    for name in ("blocks", "threads", "registers", "steps", "stages"):
        assert (getattr(work, name) >= 1).all(), name
    needs = problem.traffic()
    assert (work.blocks * work.block_flops >= needs.products * (1 - 1e-9)).all()
    assert (work.threads <= H200.max_threads_block).all()
    assert (work.shared_bytes <= H200.max_shared_block).all()


@pytest.mark.parametrize(("problem", "template"), PAIRS)
def test_no_estimate_of_a_legal_schedule_lies_under_the_bound(problem: Any, template: Any) -> None:
    _, columns = template.space(problem, H200)
    limit = bound(problem, H200)
    seconds = estimate(template.work(problem, columns, H200), limit, H200)
    assert (seconds >= limit.seconds).all()
    assert np.isfinite(seconds).any()


@pytest.mark.parametrize(("problem", "template"), PAIRS)
def test_no_estimate_lies_under_what_is_possible(problem: Any, template: Any) -> None:
    for target in (H200, find_target("a100"), find_target("rtx4090")):
        if template.why_not(problem, target) is None:
            _, columns = template.space(problem, target)
            limit = bound(problem, target)
            seconds = estimate(template.work(problem, columns, target), limit, target)
            floor = least_possible(problem, limit, target, on_tensor_cores=template.on_tensor_cores)
            assert seconds.min(initial=np.inf) >= floor * (1 - 1e-12), target.name


def test_what_is_possible_depends_on_the_unit() -> None:
    problem = matmul(4096, 4096, 4096, precision=Precision.FP16)
    limit, template = bound(problem, H200), TEMPLATE_OF["gemm_wgmma"]
    _, columns = template.space(problem, H200)
    seconds = estimate(template.work(problem, columns, H200), limit, H200).min()
    floors = [
        least_possible(problem, limit, H200, on_tensor_cores=is_so) for is_so in (True, False)
    ]
    assert floors[0] <= seconds < floors[1]


def test_of_a_template_that_cannot_be_as_fast_no_space_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = matmul(4096, 4096, 4096, precision=Precision.FP16)
    names = ("gemm_simt", "gemm_mma", "gemm_wgmma")
    templates = [TEMPLATE_OF[name] for name in names]
    asked: list[str] = []
    for each in templates:
        space = each.legal_space

        def noted(*of: Any, name: str = each.name, space: Any = space) -> Any:
            asked.append(name)
            return space(*of)

        monkeypatch.setattr(each, "legal_space", noted)
    limit = bound(problem, H200)
    least = least_estimate(problem, templates, H200, limit)
    assert asked == ["gemm_mma", "gemm_wgmma"]
    assert least == min(shortlist(problem, each, H200, limit).least for each in templates)
    alone = least_estimate(problem, templates[:1], H200, limit)
    assert alone is not None
    assert least is not None
    assert alone > least


CARRIED = [
    pytest.param(problem, id=name)
    for name, problem in PROBLEMS.items()
    if any(isinstance(problem, t.problem_type) and not t.why_not(problem, H200) for t in TEMPLATES)
]


@pytest.mark.parametrize("problem", CARRIED)
def test_a_problem_is_prepared_in_time_with_scores_between_0_and_1(problem: Any) -> None:
    start = time.process_time()  # of whatever else runs it knows nothing
    prepared = shortlist_all(problem, TEMPLATES, H200)
    seconds = time.process_time() - start
    for each in prepared.templates:
        assert all(0 < scored.score <= 1 for scored in each.ranked)
    assert seconds < 3  # 0.3 s is the goal


@pytest.mark.parametrize(("problem", "template"), PAIRS)
def test_the_score_keeps_a_schedule_near_the_best_estimate(problem: Any, template: Any) -> None:
    # The score prunes without knowing the estimate; where the two models disagree by more than a
    # third, one of them misses something that the other sees.
    _, columns = template.space(problem, H200)
    limit = bound(problem, H200)
    best = estimate(template.work(problem, columns, H200), limit, H200).min()
    (mine,) = (s for s in shortlist_all(problem, [template], H200).templates)
    assert mine.ranked[0].estimate <= 4 / 3 * best * _wide_loads(mine)


def _wide_loads(shortlist: Any) -> float:
    """How much the counted passes of loads may add to an estimate that counts one for each."""
    first = shortlist.ranked[0]
    return max(1.0, first.shared.passes / 2)
