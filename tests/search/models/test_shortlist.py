"""From space to kept schedules: counts, order, and what conflicts do."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wpk.errors import WpkError
from wpk.performance.bank_conflicts import shared_cost
from wpk.performance.bound import bound
from wpk.performance.extension import extended_pul
from wpk.performance.pul import pul
from wpk.performance.work import Columns, at_rows
from wpk.problems import Matmul
from wpk.schedules.limit import Limit, meeting
from wpk.search.models.pruning import PUL, find_pruning, kept_count, paper_count
from wpk.search.models.shortlist import shortlist
from wpk.targets.registry import find_target

H200 = find_target("h200")
Make = Callable[[int, int, int], Matmul]


@pytest.mark.parametrize(
    ("legal", "kept"),
    [(1, 1), (5, 5), (24, 24), (600, 24), (1000, 35), (6200, 217), (10**5, 256)],
)
def test_keeps_a_small_share_within_limits(legal: int, kept: int) -> None:
    assert kept_count(legal) == kept


@pytest.mark.parametrize(("legal", "kept"), [(1, 1), (49, 1), (249, 2), (6200, 62)])
def test_deepcuts_keeps_one_per_cent(legal: int, kept: int) -> None:
    assert paper_count(legal) == kept


def test_pul_keeps_what_its_equations_score_best(tiled: Any, make_product: Make) -> None:
    problem = make_product(512, 512, 256)
    limit = bound(problem, H200)
    _, columns = tiled.space(problem, H200)
    work = tiled.work(problem, columns, H200)
    schedules = [tiled.schedule(columns, row) for row in range(len(work.blocks))]
    costs = [shared_cost(tuple(tiled.shared_accesses(problem, each))) for each in schedules]
    scores = pul(work, H200, np.asarray([cost.coefficient for cost in costs])).score
    by_pul, by_waves = (
        shortlist(problem, tiled, H200, limit, *pruning).ranked for pruning in ([PUL], [])
    )
    assert len(by_pul) == paper_count(len(schedules)) < len(by_waves)
    best = np.sort(scores)[::-1][: len(by_pul)]
    assert sorted((s.score for s in by_pul), reverse=True) == pytest.approx(best.tolist())
    assert [s.score for s in by_waves][: len(by_pul)] != pytest.approx(best.tolist())


def test_an_unknown_pruning_is_refused_naming_those_there_are() -> None:
    with pytest.raises(WpkError, match="no pruning 'paper'") as error:
        find_pruning("paper")
    assert error.value.fix == "choose one of waves, pul"


def test_the_funnel_counts_every_step(tiled: Any, make_product: Make) -> None:
    problem = make_product(512, 512, 256)
    found = shortlist(problem, tiled, H200, bound(problem, H200))
    # 6 * 6 tiles, 3 depths, 2 paddings; legal: at least 32 threads (a multiple), at most 1024,
    # and two buffers in 227 KiB.
    legal = 0
    for m in tiled.sizes:
        for n in tiled.sizes:
            threads = m * n // 64
            if threads % 32 or not 0 < threads <= 1024:
                continue
            legal += sum(
                8 * (m + n) * (k + pad) <= H200.max_shared_block
                for k in (8, 16, 32)
                for pad in (0, 1)
            )
    assert (found.funnel.space, found.funnel.legal) == (216, legal)
    assert found.funnel.kept == 24 == len(found.ranked)


def test_every_kept_schedule_is_legal_and_estimates_rise_from_the_bound(
    tiled: Any, make_product: Make
) -> None:
    problem = make_product(512, 512, 256)
    limit = bound(problem, H200)
    ranked = shortlist(problem, tiled, H200, limit).ranked
    assert all(tiled.why_illegal(problem, s.schedule, H200) is None for s in ranked)
    seconds = [s.estimate for s in ranked]
    assert seconds == sorted(seconds)
    assert seconds[0] >= limit.seconds
    assert len({s.schedule for s in ranked}) == len(ranked)


@pytest.mark.parametrize(
    "sizes", [(512, 512, 256), (300, 200, 100)], ids=["scores far apart", "scores close together"]
)
def test_the_kept_are_the_best_of_all_by_counted_score(
    sizes: tuple[int, int, int], tiled: Any, make_product: Make
) -> None:
    problem = make_product(*sizes)
    limit = bound(problem, H200)
    _, columns = tiled.space(problem, H200)
    work = tiled.work(problem, columns, H200)
    costs = [
        shared_cost(tiled.shared_accesses(problem, tiled.schedule(columns, row)))
        for row in range(len(columns["block_m"]))
    ]
    passes = np.asarray([cost.passes for cost in costs])
    scores = np.sort(extended_pul(work, limit.operations, H200, passes).score)[::-1]
    kept = [s.score for s in shortlist(problem, tiled, H200, limit).ranked]
    assert np.allclose(sorted(kept, reverse=True), scores[: len(kept)], rtol=1e-8)


def test_conflicts_are_counted_and_push_schedules_out(tiled: Any, make_product: Make) -> None:
    # Rows of 32 words put all lanes on one bank; one word of padding puts them on 32.
    problem = make_product(512, 512, 256)
    ranked = shortlist(problem, tiled, H200, bound(problem, H200)).ranked
    assert all(s.schedule.padded == 1 for s in ranked)
    assert all(s.shared.coefficient == 1.0 for s in ranked)


def test_scores_lie_between_0_and_1(tiled: Any, make_product: Make) -> None:
    problem = make_product(200, 72, 64)
    for scored in shortlist(problem, tiled, H200, bound(problem, H200)).ranked:
        assert 0 < scored.score <= 1


def test_a_template_without_legal_schedules_gives_an_empty_list(
    make_tiled: Any, make_product: Make
) -> None:
    problem = make_product(64, 64, 64)
    found = shortlist(problem, make_tiled(sizes=(1, 2)), H200, bound(problem, H200))
    assert found.ranked == ()
    assert (found.funnel.space, found.funnel.legal) == (24, 0)


def test_a_large_space_is_shortlisted_quickly_and_the_same_way_each_time(
    make_tiled: Any, make_product: Make
) -> None:
    many = make_tiled(sizes=tuple(range(8, 8 + 8 * 200, 8)))
    problem = make_product(2048, 2048, 64)
    limit = bound(problem, H200)
    start = time.process_time()  # of whatever else runs it knows nothing
    first = shortlist(problem, many, H200, limit)
    seconds = time.process_time() - start
    assert first.funnel.space == 200 * 200 * 6
    assert first.funnel.legal > 1000
    again = shortlist(problem, many, H200, limit)
    assert (again.funnel, again.ranked) == (first.funnel, first.ranked)
    assert seconds < 3  # 0.3 s is the goal


def test_a_space_that_is_too_large_is_thinned(
    make_tiled: Any, make_product: Make, monkeypatch: Any
) -> None:
    monkeypatch.setattr("wpk.search.models.shortlist.MOST_SCORED", 10)
    problem = make_product(512, 512, 256)
    found = shortlist(problem, make_tiled(), H200, bound(problem, H200))
    assert found.funnel.legal > 10
    assert found.funnel.kept == 10
    again = shortlist(problem, make_tiled(), H200, bound(problem, H200))
    assert again.ranked == found.ranked


def test_selecting_rows_keeps_what_is_no_column(tiled: Any, make_product: Make) -> None:
    problem = make_product(64, 64, 64)
    _, columns = tiled.space(problem, H200)
    work = tiled.work(problem, columns, H200)
    part = at_rows(work, np.asarray([3, 1]))
    assert part.unit is None
    assert part.element_bytes == 4
    assert part.blocks.tolist() == [work.blocks[3], work.blocks[1]]


def test_ways_that_were_not_measured_against_each_other_are_pruned_apart(
    make_product: Make, make_tiled: Any
) -> None:
    problem, template = make_product(512, 512, 512), make_tiled((32, 64, 128))
    limit = bound(problem, H200)
    together = shortlist(problem, template, H200, limit)
    columns = template.space(problem, H200)[1]

    def families(columns: Columns) -> NDArray[np.int64]:
        return np.asarray(columns["block_m"] == 32, np.int64)

    template.families = families
    apart = shortlist(problem, template, H200, limit)
    legal = {of: int((families(columns) == of).sum()) for of in (0, 1)}
    kept = Counter(scored.schedule.block_m == 32 for scored in apart.ranked)
    assert kept == {bool(of): kept_count(count) for of, count in legal.items()}
    assert apart.funnel.kept == sum(kept.values())
    estimates = [scored.estimate for scored in apart.ranked]
    assert estimates == sorted(estimates)
    best = {scored.schedule for scored in together.ranked}
    assert best <= {scored.schedule for scored in apart.ranked}


def test_a_space_filtered_axis_by_axis_is_the_grid_that_meets_all_limits(
    tiled: Any, make_product: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, axes = make_product(512, 512, 256), tiled.axes(make_product(512, 512, 256), H200)
    grid = np.meshgrid(*map(np.asarray, axes.values()), indexing="ij")
    columns = {name: values.ravel() for name, values in zip(axes, grid, strict=True)}
    more = Limit("block_k < 32 or padded == 0", "deep steps have no room for padding")
    limits = [*tiled.limits(problem), more]
    monkeypatch.setattr(tiled, "limits", lambda problem: limits)
    for several in (limits, tiled.target_limits(problem, H200)):
        work = partial(tiled.work, problem, columns, H200)
        figures = {**tiled.figures(problem, columns, work, H200), **columns}
        met = meeting(several, figures)
        columns = {name: values[met] for name, values in columns.items()}
    size, found = tiled.space(problem, H200)
    assert size == grid[0].size
    assert list(found) == list(columns)
    assert all(np.array_equal(found[name], columns[name]) for name in columns)
    nothing = Limit("1 == 0", "nothing is legal")
    monkeypatch.setattr(tiled, "limits", lambda problem: [nothing])
    assert len(tiled.space(problem, H200)[1]["block_m"]) == 0
