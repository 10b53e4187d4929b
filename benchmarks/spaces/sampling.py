"""What of a schedule space is recorded: a part of what production searches, and a grid with all its neighbours.

A whole space of today's templates has thousands of schedules; two parts of it stand for it:

- **kept**: schedules that the score keeps, which production searches: the first few by estimate, which
  are tried first, then others in a random order, at most `MOST_KEPT`.
- **grid**: all legal schedules whose parameters have certain values. Values are taken away at random until
  at most `MOST_OF_GRID` schedules are left; so whoever changes one parameter of a schedule finds the
  neighbours that the whole space has, as far as those values reach. A single schedule drawn at random would
  have hardly any. A space that is no larger is recorded whole.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaces.line_file import Told
from wpk.performance import Columns, bound
from wpk.problems import Problem
from wpk.schedules import Schedule, ScheduleTemplate
from wpk.schedules.registry import TEMPLATES
from wpk.search.models import PROMISING, Shortlist, estimates
from wpk.search.models.shortlist import shortlist
from wpk.targets import Target

MOST_OF_GRID = 420
MOST_KEPT = 192

ORDINARY_KEPT = 32
"""Of templates of ordinary cores beside those of tensor cores: in such company they win nothing."""

_ORDINARY = ("conv_simt", "gemm_simt")

Template = ScheduleTemplate[Problem, Schedule]


@dataclass(frozen=True)
class Sample:
    """A sample is the part of a template's space, for one problem, that is recorded.

    Attributes:
        template: The template.
        legal: How many schedules are legal.
        survivors: How many of them the score keeps.
        kept: Of those, the ones recorded; the first by estimate come first.
        grid: The schedules of the grid, in a random order; none of ordinary cores' templates.
        ranked: All that the score keeps, the least estimate first, as columns.
    """

    template: Template
    legal: int
    survivors: int
    kept: tuple[Schedule, ...]
    grid: tuple[Schedule, ...]
    ranked: Columns

    def told(self, problem: Problem, target: Target) -> dict[Schedule, Told]:
        """Return what the models say of each schedule of both parts."""
        schedules = list(dict.fromkeys((*self.kept, *self.grid)))
        columns = {
            name: np.asarray([getattr(each, name) for each in schedules], np.int64)
            for name, _ in schedules[0].parameters()
        }
        seconds = estimates(problem, self.template, target, columns)
        of_ranked = zip(*(self.ranked[name].tolist() for name in columns), strict=True)
        ranks = {values: rank for rank, values in enumerate(of_ranked)}
        values = zip(*(each.tolist() for each in columns.values()), strict=True)
        return {
            schedule: Told(estimate, ranks.get(key))
            for schedule, estimate, key in zip(schedules, seconds.tolist(), values, strict=True)
        }


def samples(problem: Problem, target: Target, seed: int = 0) -> list[Sample]:
    """Return the samples of all templates that carry a problem and have legal schedules for it."""
    found = [
        _sample(problem, t, target, np.random.default_rng([seed, n]))
        for n, t in enumerate(carrying(problem, target))
    ]
    return [each for each in found if each.legal]


def carrying(problem: Problem, target: Target) -> list[Template]:
    """Return the templates that carry a problem."""
    able = [t for t in TEMPLATES if isinstance(problem, t.problem_type)]
    return [t for t in able if t.why_not(problem, target) is None]


def _sample(
    problem: Problem, template: Template, target: Target, generator: np.random.Generator
) -> Sample:
    found = shortlist(problem, template, target, bound(problem, target))
    is_ordinary = template.name in _ORDINARY
    kept = _kept(found, ORDINARY_KEPT if is_ordinary else MOST_KEPT, generator)
    legal = found.funnel.legal
    grid: list[Schedule] = []
    if legal and not is_ordinary:
        _, columns = template.space(problem, target)
        rows = generator.permutation(grid_rows(columns, MOST_OF_GRID, generator))
        grid = [template.schedule(columns, row) for row in rows.tolist()]
    every = found.kept.columns
    return Sample(template, legal, found.funnel.kept, tuple(kept), tuple(grid), every)


def _kept(found: Shortlist, most: int, generator: np.random.Generator) -> list[Schedule]:
    """The first by estimate, then others; where only ordinary cores' are asked for, the first alone."""
    ranked = [prediction.schedule for prediction in found.ranked]
    first, others = ranked[:PROMISING], ranked[PROMISING:]
    drawn = [others[place] for place in generator.permutation(len(others)).tolist()]
    return [*first, *drawn][:most]


def grid_rows(columns: Columns, most: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows of a random grid: values of parameters are taken away until at most so many are left.

    A value whose loss would leave less than half as many as wanted stays.
    """
    table = np.stack(list(columns.values()), axis=1)
    rows = np.arange(len(table))
    while len(rows) > most:
        left = [np.unique(table[rows, axis]) for axis in range(table.shape[1])]
        choices = [(axis, value) for axis, values in enumerate(left) for value in values.tolist()]
        choices = [(axis, value) for axis, value in choices if len(left[axis]) > 1]
        weights = np.asarray([len(left[axis]) - 1.0 for axis, _ in choices])
        order = generator.choice(len(choices), len(choices), False, weights / weights.sum())
        remaining = (rows[table[rows, choices[i][0]] != choices[i][1]] for i in order.tolist())
        rows = next(some for some in remaining if len(some) >= most / 2)
    return rows
