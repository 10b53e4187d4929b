"""What is kept without counting every schedule is what counting every schedule keeps, to the bit."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems.registered import PROBLEMS

from wpk.performance.bank_conflicts import SharedCost, shared_cost
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.performance.extension import extended_pul
from wpk.performance.occupancy import resident_blocks
from wpk.performance.pul import pul
from wpk.performance.waves import Grids
from wpk.performance.work import Columns, Work, at_rows
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATE_OF, TEMPLATES
from wpk.schedules.template import ScheduleTemplate
from wpk.search.models.pruning import PUL, WAVES, Pruning
from wpk.search.models.scored_space import ScoredSpace
from wpk.search.models.shortlist import least_estimate, shortlist
from wpk.targets.registry import find_target
from wpk.targets.target import Target

H200 = find_target("h200")
A100 = find_target("a100")


def _pairs(*, sampled: bool) -> list[Any]:
    """Each template with every problem on both targets; of a sample all but one problem each are marked exhaustive."""
    found = []
    for number, (target, template) in enumerate(product((H200, A100), TEMPLATES)):
        carried = [
            name
            for name, problem in PROBLEMS.items()
            if isinstance(problem, template.problem_type)
            and template.why_not(problem, target) is None
        ]
        for place, name in enumerate(carried):
            is_left_out = sampled and place != number % len(carried)
            label = f"{name}-{template.name}-{target.name}"
            marks = [pytest.mark.exhaustive] * is_left_out
            found.append(pytest.param(PROBLEMS[name], template, target, id=label, marks=marks))
    return found


_Template = ScheduleTemplate[Any, Any]


def _counted(template: _Template, problem: Problem, columns: Columns) -> list[SharedCost]:
    """What the loads of each schedule cost; each is asked for its own."""
    rows = range(len(next(iter(columns.values()))))
    schedules = (template.schedule(columns, row) for row in rows)
    return [shared_cost(tuple(template.shared_accesses(problem, each))) for each in schedules]


def _scores(
    work: Work,
    pruning: Pruning,
    problem: Problem,
    target: Target,
    costs: Sequence[SharedCost] | None,
) -> NDArray[np.float64]:
    rows = len(work.blocks)
    counted = costs or [SharedCost(1.0, 1.0)] * rows
    if pruning is PUL:
        return pul(work, target, np.asarray([each.coefficient for each in counted])).score
    operations = bound(problem, target).operations or float((work.blocks * work.block_flops).min())
    passes = np.asarray([each.passes for each in counted])
    return extended_pul(work, operations, target, passes).score


def _plainly_kept(
    problem: Problem, template: _Template, target: Target, pruning: Pruning
) -> list[tuple[Any, float, SharedCost, float]]:
    """The shortlist by counting and sorting every legal schedule."""
    _, columns = template.space(problem, target)
    work, limit = template.work(problem, columns, target), bound(problem, target)
    costs = _counted(template, problem, columns)
    passes = np.asarray([each.passes for each in costs])
    scores = _scores(work, pruning, problem, target, costs)
    ceilings = _scores(work, pruning, problem, target, None)
    least, seconds = estimate(work, limit, target), estimate(work, limit, target, passes)
    families = template.families(columns)
    if not pruning.by_family:
        families = np.zeros_like(families)
    kept: list[int] = []
    for family in np.unique(families):
        rows = np.flatnonzero(families == family)
        keys = least[rows], -ceilings[rows].round(9), -scores[rows].round(9)
        kept += rows[np.lexsort(keys)][: pruning.kept(rows.size)].tolist()
    ranked = sorted(sorted(kept), key=lambda row: seconds[row])
    return [
        (template.schedule(columns, row), scores[row], costs[row], seconds[row]) for row in ranked
    ]


def _kept(
    problem: Problem, template: _Template, target: Target, pruning: Pruning
) -> list[tuple[Any, float, SharedCost, float]]:
    found = shortlist(problem, template, target, bound(problem, target), pruning).ranked
    return [(each.schedule, each.score, each.shared, each.estimate) for each in found]


@pytest.mark.parametrize(("problem", "template", "target"), _pairs(sampled=True))
def test_what_is_kept_is_what_counting_every_schedule_keeps(
    problem: Any, template: Any, target: Target
) -> None:
    for pruning in (WAVES, PUL) if target is H200 else (WAVES,):
        assert _kept(problem, template, target, pruning) == _plainly_kept(
            problem, template, target, pruning
        )


def _conv_simt() -> tuple[Problem, _Template]:
    template = TEMPLATE_OF["conv_simt"]
    carried = (each for each in PROBLEMS.values() if isinstance(each, template.problem_type))
    return next(each for each in carried if not template.why_not(each, H200)), template


@pytest.mark.parametrize("left_out", ["padding", "row_major", "thread_m", "lanes_n"])
def test_a_key_of_loads_that_is_left_out_is_found(
    left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, template = _conv_simt()
    keys = template.access_keys

    def fewer(problem: Problem, columns: Columns) -> Columns:
        return {of: values for of, values in keys(problem, columns).items() if of != left_out}

    monkeypatch.setattr(template, "access_keys", fewer)
    monkeypatch.setattr(template, "access_context", lambda problem: None)
    plainly = _plainly_kept(problem, template, H200, WAVES)
    assert _kept(problem, template, H200, WAVES) != plainly


def test_stopping_before_all_that_may_enter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, template = _conv_simt()
    falling = ScoredSpace._falling

    def one_batch(self: ScoredSpace, rows: Any, count: int) -> Any:
        return iter([next(falling(self, rows, count))[:count]])

    monkeypatch.setattr(ScoredSpace, "_falling", one_batch)
    plainly = _plainly_kept(problem, template, H200, WAVES)
    assert _kept(problem, template, H200, WAVES) != plainly


@pytest.mark.parametrize(("problem", "template", "target"), _pairs(sampled=False))
def test_the_work_that_telling_legal_schedules_counted_is_theirs(
    problem: Any, template: Any, target: Target
) -> None:
    found = template.legal_space(problem, target)
    work = template.work(problem, found.columns, target)
    if found.work is None:
        return
    for name, values in vars(work).items():
        assert np.array_equal(getattr(found.work, name), values), name
    assert len(found.work.blocks) == len(next(iter(found.columns.values())))


def test_rows_of_grids_are_grids_of_rows() -> None:
    problem, template = _conv_simt()
    _, columns = template.space(problem, H200)
    work = template.work(problem, columns, H200)
    rows = np.arange(len(work.blocks))[::-7]
    part, anew = Grids.of(work, H200).rows(rows), Grids.of(at_rows(work, rows), H200)
    assert np.array_equal(part.waves, anew.waves)
    assert np.array_equal(part.l2, anew.l2)
    assert np.array_equal(part.resident, resident_blocks(at_rows(work, rows), H200))
    assert np.array_equal(part.work.blocks, anew.work.blocks)


def test_values_too_large_for_one_number_are_told_apart_by_rank(
    tiled: Any, make_product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_product(512, 512, 256)
    usual = _kept(problem, tiled, H200, WAVES)
    monkeypatch.setattr("wpk.search.models.load_costs._MOST_CODES", 2)
    assert _kept(problem, tiled, H200, WAVES) == usual


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_least_estimate_is_the_least_of_what_is_kept(name: str) -> None:
    problem = PROBLEMS[name]
    carriers = [
        each
        for each in TEMPLATES
        if isinstance(problem, each.problem_type) and each.why_not(problem, H200) is None
    ]
    limit = bound(problem, H200)
    lists = [shortlist(problem, each, H200, limit) for each in carriers]
    least = min((each.least for each in lists if each.funnel.kept), default=None)
    assert least_estimate(problem, carriers, H200, limit) == least
