"""A shortlist leads from a template's whole space to the few schedules worth compiling.

    space -> legal -> score keeps some -> estimate ranks

Which score, and how many it keeps, is a `Pruning`. Scores without bank conflicts are upper limits of the scores with them, so conflicts are counted in
the order of these limits, and only until no uncounted schedule can enter the kept ones any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.performance import (
    Bound,
    Columns,
    Floats,
    SharedAccess,
    SharedCost,
    Work,
    estimate,
    shared_cost,
)
from wpk.performance import bound as performance_bound
from wpk.plan import Funnel
from wpk.problems import Problem
from wpk.schedules import Schedule, ScheduleTemplate
from wpk.search.models.pruning import WAVES, Pruning
from wpk.targets import Target

MOST_SCORED = 100_000
"""Legal schedules that are scored at most; beyond, as many are drawn with a fixed seed."""

PROMISING = 8
"""How many of the kept schedules, those with the least estimates, are measured before a searcher proposes others.

On 27 whole spaces measured on an H200 the best of them is within 6 % of the best of all, the first 8
that a searcher draws within 11 % (geometric means)."""

_THINNING_SEED = 0
_TIE_DIGITS = 9  # scores that agree to so many digits differ by rounding only
_ROUNDING = 1e-9  # by which an estimate may differ where it is computed among others

Template = ScheduleTemplate[Any, Any]


@dataclass(frozen=True)
class Prediction:
    """A prediction is what the models say of a schedule.

    Attributes:
        schedule: The schedule.
        score: What prunes, with its bank conflicts counted, between 0 and 1.
        shared: What its shared memory loads cost: COEF_bc and passes a load.
        estimate: Predicted seconds.
    """

    schedule: Schedule
    score: float
    shared: SharedCost
    estimate: float


@dataclass(frozen=True)
class Shortlist:
    """A shortlist is what a template has to offer for a problem.

    Attributes:
        template: The template.
        funnel: How many schedules each step left; none is compiled yet.
        ranked: The kept schedules, smallest estimate first; ties in the order of the parameters.
    """

    template: Template
    funnel: Funnel
    ranked: tuple[Prediction, ...]


def shortlist(
    problem: Problem, template: Template, target: Target, bound: Bound, pruning: Pruning = WAVES
) -> Shortlist:
    """Return the schedules of a template that are worth compiling for a problem; none where none is legal.

    Args:
        problem: A problem that the template carries (`ScheduleTemplate.why_not` gave None).
        template: Where the schedules come from.
        target: The GPU.
        bound: The problem's bound on the target.
        pruning: What keeps them.
    """
    space, legal = template.space(problem, target)
    count = _rows(legal)
    if count == 0:
        return Shortlist(template, Funnel(template.name, "", space, 0, 0, 0), ())
    models = _Models(problem, template, target, bound, _thin(legal), pruning)
    kept, costs = _keep_of_each_family(models, count)
    funnel = Funnel(template.name, "", space, legal=count, kept=len(kept), compiled=0)
    return Shortlist(template, funnel, models.predictions(kept, costs))


def least_estimate(
    problem: Problem,
    templates: Sequence[Template],
    target: Target,
    bound: Bound,
    pruning: Pruning = WAVES,
) -> float | None:
    """Return the least estimate of all schedules on the shortlists of some templates; None where none is legal.

    Bank conflicts never make a schedule faster: a template whose estimates are all larger without them is not
    shortlisted.

    Args:
        problem: A problem that all of the templates carry.
        templates: Where the schedules come from.
        target: The GPU.
        bound: The problem's bound on the target.
        pruning: What keeps them.
    """
    views = []
    for template in templates:
        _, legal = template.space(problem, target)
        if _rows(legal):
            models = _Models(problem, template, target, bound, _thin(legal), pruning)
            views.append((float(models.without_conflicts.min()), models, _rows(legal)))
    best = None
    for floor, models, count in sorted(views, key=lambda view: view[0]):
        if best is not None and floor > best * (1 + _ROUNDING):
            break
        seconds = models.predictions(*_keep_of_each_family(models, count))[0].estimate
        best = seconds if best is None else min(best, seconds)
    return best


def predict(
    problem: Problem, template: Template, schedule: Schedule, target: Target, bound: Bound
) -> Prediction:
    """Return what the models say of one legal schedule, kept or not."""
    models = _Models(problem, template, target, bound, schedule.columns())
    return models.predictions([0], models.costs([0]))[0]


def estimates(problem: Problem, template: Template, target: Target, columns: Columns) -> Floats:
    """Return the predicted seconds of schedules, kept or not, their bank conflicts counted."""
    models = _Models(problem, template, target, performance_bound(problem, target), columns)
    known: dict[tuple[SharedAccess, ...], float] = {}
    passes = []
    accesses_of = template.accesses_of(problem)
    for schedule in models.schedules(list(range(_rows(columns)))):
        accesses = tuple(accesses_of(schedule))
        if accesses not in known:
            known[accesses] = shared_cost(accesses).passes
        passes.append(known[accesses])
    return estimate(models.work, models.bound, target, np.asarray(passes))


@dataclass(frozen=True)
class _Models:
    """The models' view of one template's schedules."""

    problem: Problem
    template: Template
    target: Target
    bound: Bound
    columns: Columns
    pruning: Pruning = WAVES

    @cached_property
    def work(self) -> Work:
        return self.template.work(self.problem, self.columns, self.target)

    @cached_property
    def without_conflicts(self) -> Floats:
        """Estimates of all schedules as if no load conflicted: no schedule is faster than so."""
        return estimate(self.work, self.bound, self.target)

    def order(self) -> tuple[NDArray[np.int64], Floats]:
        """Return rows by falling score without conflicts, ties by estimate, then by the parameters."""
        score = self.pruning.score(self.work, self.bound, self.target, None)
        rounded = score.round(_TIE_DIGITS)
        return np.lexsort((self.without_conflicts, -rounded)), rounded

    def costs(self, rows: list[int]) -> dict[int, SharedCost]:
        """Return what the shared memory loads of some schedules cost, by row."""
        accesses_of = self.template.accesses_of(self.problem)
        costs: dict[int, SharedCost] = {}
        known: dict[int, tuple[Sequence[SharedAccess], SharedCost]] = {}  # by identity
        for row, schedule in zip(rows, self.schedules(rows), strict=True):
            accesses = accesses_of(schedule)
            if id(accesses) not in known:
                known[id(accesses)] = accesses, shared_cost(tuple(accesses))
            costs[row] = known[id(accesses)][1]
        return costs

    def schedules(self, rows: list[int]) -> list[Schedule]:
        """Return some of the schedules; their columns are read once for all of them."""
        make = self.template.schedule_type
        columns = [self.columns[field.name][rows].tolist() for field in fields(make)]
        return [make(*parameters) for parameters in zip(*columns, strict=True)]

    def scores(self, rows: list[int], costs: dict[int, SharedCost]) -> Floats:
        work = select(self.work, np.asarray(rows))
        return self.pruning.score(work, self.bound, self.target, [costs[row] for row in rows])

    def predictions(self, rows: list[int], costs: dict[int, SharedCost]) -> tuple[Prediction, ...]:
        work = select(self.work, np.asarray(rows))
        passes = np.asarray([costs[row].passes for row in rows])
        score = self.scores(rows, costs)
        seconds = estimate(work, self.bound, self.target, passes)
        schedules = self.schedules(rows)
        return tuple(
            Prediction(
                schedule=schedules[i],
                score=float(score[i]),
                shared=costs[rows[i]],
                estimate=float(seconds[i]),
            )
            for i in np.argsort(seconds, kind="stable")
        )


def _keep_of_each_family(models: _Models, legal: int) -> tuple[list[int], dict[int, SharedCost]]:
    """The best rows of every family by counted score, and the cost of every row that was counted."""
    families = models.template.families(models.columns)
    if not models.pruning.by_family:
        families = np.zeros_like(families)
    order, limits = models.order()
    kept: list[int] = []
    costs: dict[int, SharedCost] = {}
    for family in np.unique(families):
        candidates = order[families[order] == family]
        share = legal * candidates.size // families.size
        rows, counted = _keep(models, candidates.tolist(), limits, models.pruning.kept(share))
        kept += rows
        costs |= counted
    return sorted(kept), costs


def _keep(
    models: _Models, candidates: list[int], limits: Floats, count: int
) -> tuple[list[int], dict[int, SharedCost]]:
    """The best ``count`` of some rows, in falling order of their limits."""
    costs: dict[int, SharedCost] = {}
    scores: list[float] = []
    for start in range(0, len(candidates), count):
        batch = candidates[start : start + count]
        if len(scores) >= count and sorted(scores)[-count] >= limits[batch[0]]:
            break
        costs |= models.costs(batch)
        scores += models.scores(batch, costs).round(_TIE_DIGITS).tolist()
    places = np.argsort(-np.asarray(scores), kind="stable")[:count]
    return [candidates[place] for place in places], costs


def select(work: Work, rows: NDArray[np.int64]) -> Work:
    """Return the work of some of the schedules, in the order of ``rows``."""
    arrays = {k: v[rows] for k, v in vars(work).items() if isinstance(v, np.ndarray)}
    return Work(**{**vars(work), **arrays})


def _thin(columns: Columns) -> Columns:
    count = _rows(columns)
    if count <= MOST_SCORED:
        return columns
    drawn = np.random.default_rng(_THINNING_SEED).choice(count, MOST_SCORED, replace=False)
    drawn.sort()  # ties are broken by the parameters' order, which a draw must not disturb
    return {name: values[drawn] for name, values in columns.items()}


def _rows(columns: Columns) -> int:
    return len(next(iter(columns.values())))
