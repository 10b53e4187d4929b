"""A shortlist leads from a template's whole space to the few schedules worth compiling.

    space -> legal -> score keeps some -> estimate ranks

Which score, and how many it keeps, is a `Pruning`; how they are found without counting all is `wpk.search.models.scored_space`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from wpk.performance import Bound, Columns, Floats, SharedCost, at_rows, least_possible
from wpk.performance import bound as performance_bound
from wpk.plan import Funnel
from wpk.problems import Problem
from wpk.schedules import Schedule
from wpk.search.models.load_costs import Template, schedules_of
from wpk.search.models.pruning import WAVES, Pruning
from wpk.search.models.scored_space import Predictions, ScoredSpace, shared_of
from wpk.targets import Target

MOST_SCORED = 100_000
"""Legal schedules that are scored at most; beyond, as many are drawn with a fixed seed."""

PROMISING = 8
"""How many of the kept schedules, those with the least estimates, are measured before a searcher proposes others.

On 27 whole spaces measured on an H200 the best of them is within 6 % of the best of all, the first 8
that a searcher draws within 11 % (geometric means)."""

_THINNING_SEED = 0
_ROUNDING = 1e-9  # by which an estimate may differ where it is computed among others


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
        kept: The kept schedules, smallest estimate first; ties in the order of the parameters.
    """

    template: Template
    funnel: Funnel
    kept: Predictions

    @cached_property
    def ranked(self) -> tuple[Prediction, ...]:
        """The kept schedules one by one."""
        return self.first(len(self.kept))

    def first(self, count: int) -> tuple[Prediction, ...]:
        """Return the first of the kept schedules, fewer where there are no more."""
        columns = {name: values[:count] for name, values in self.kept.columns.items()}
        return tuple(
            Prediction(
                schedule=schedule,
                score=float(self.kept.score[place]),
                shared=shared_of(self.kept, place),
                estimate=float(self.kept.estimate[place]),
            )
            for place, schedule in enumerate(schedules_of(self.template, columns))
        )

    @property
    def least(self) -> float:
        """The least estimate of the kept schedules, in seconds."""
        return float(self.kept.estimate[0])


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
    combinations, count, space = _scored(problem, template, target, bound, pruning)
    if count == 0:
        nothing = Funnel(template.name, "", combinations, 0, 0, 0)
        none = np.empty(0)
        return Shortlist(template, nothing, Predictions(space.columns, none, none, none, none))
    kept = space.kept(count)
    funnel = Funnel(template.name, "", combinations, legal=count, kept=kept.size, compiled=0)
    return Shortlist(template, funnel, space.predictions(kept).ranked())


def least_estimate(
    problem: Problem,
    templates: Sequence[Template],
    target: Target,
    bound: Bound,
    pruning: Pruning = WAVES,
) -> float | None:
    """Return the least estimate of all schedules on the shortlists of some templates; None where none is legal.

    Templates that none of all schedules could be the fastest of are not shortlisted: bank conflicts never make one
    faster than it is estimated without them. Nor are the spaces of those looked at that cannot be as fast on the units
    that they use (`wpk.performance.estimate.least_possible`).

    Args:
        problem: A problem that all of the templates carry.
        templates: Where the schedules come from.
        target: The GPU.
        bound: The problem's bound on the target.
        pruning: What keeps them.
    """
    floors = [
        least_possible(problem, bound, target, on_tensor_cores=each.on_tensor_cores)
        for each in templates
    ]
    lowest = min(floors, default=inf)
    parts = [[each for each, floor in zip(templates, floors, strict=True) if floor <= lowest]]
    later = [(floor, place) for place, floor in enumerate(floors) if floor > lowest]
    parts += [[templates[place]] for _, place in sorted(later)]
    best: float | None = None
    for part, floor in zip(parts, [lowest, *sorted(floor for floor, _ in later)], strict=True):
        if best is not None and floor > best * (1 + _ROUNDING):
            break
        best = _least(problem, part, target, bound, pruning, best)
    return best


def _least(
    problem: Problem,
    templates: Sequence[Template],
    target: Target,
    bound: Bound,
    pruning: Pruning,
    best: float | None,
) -> float | None:
    """The least estimate on the shortlists of some templates, where it is less than another; else the other."""
    views = []
    for template in templates:
        _, count, space = _scored(problem, template, target, bound, pruning)
        if count:
            views.append((float(space.without_conflicts.min()), space, count))
    for floor, space, count in sorted(views, key=lambda view: view[0]):
        if best is not None and floor > best * (1 + _ROUNDING):
            break
        seconds = float(space.predictions(space.kept(count)).estimate.min())
        best = seconds if best is None else min(best, seconds)
    return best


def predict(
    problem: Problem, template: Template, schedule: Schedule, target: Target, bound: Bound
) -> Prediction:
    """Return what the models say of one legal schedule, kept or not."""
    space = ScoredSpace(problem, template, target, bound, schedule.columns())
    found = space.predictions(space.all_rows())
    score, seconds = float(found.score[0]), float(found.estimate[0])
    return Prediction(schedule, score, shared_of(found, 0), seconds)


def estimates(problem: Problem, template: Template, target: Target, columns: Columns) -> Floats:
    """Return the predicted seconds of schedules, kept or not, their bank conflicts counted."""
    bound = performance_bound(problem, target)
    space = ScoredSpace(problem, template, target, bound, columns)
    return space.predictions(space.all_rows()).estimate


def _scored(
    problem: Problem, template: Template, target: Target, bound: Bound, pruning: Pruning
) -> tuple[int, int, ScoredSpace]:
    """All combinations, the legal schedules among them, and these, thinned out, as the models see them."""
    legal = template.legal_space(problem, target)
    columns, work, count = legal.columns, legal.work, _rows(legal.columns)
    if count > MOST_SCORED:
        drawn = np.random.default_rng(_THINNING_SEED).choice(count, MOST_SCORED, replace=False)
        drawn.sort()  # ties are broken by the parameters' order, which a draw must not disturb
        columns = {name: values[drawn] for name, values in columns.items()}
        work = None if work is None else at_rows(work, drawn)
    space = ScoredSpace(problem, template, target, bound, columns, work, pruning)
    return legal.combinations, count, space


def _rows(columns: Columns) -> int:
    return len(next(iter(columns.values())))
