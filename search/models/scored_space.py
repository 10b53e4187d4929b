"""A template's legal schedules as the models see them: arrays with one entry a schedule, and only the kept become objects.

    work -> grids -> score without bank conflicts -> conflicts counted of the best, batch by batch -> kept -> estimate

Scores without bank conflicts are upper limits of the scores with them, so conflicts are counted in the order of these
limits, and only until no uncounted schedule can enter the kept ones any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from wpk.performance import (
    Bound,
    Columns,
    Floats,
    Grids,
    Rows,
    SharedCost,
    Work,
    at_rows,
    estimate_of,
)
from wpk.problems import Problem
from wpk.search.models.load_costs import LoadCosts, Template
from wpk.search.models.pruning import WAVES, Pruning
from wpk.targets import Target

_TIE_DIGITS = 9  # scores that agree to so many digits differ by rounding only


@dataclass(frozen=True)
class Predictions:
    """Predictions are what the models say of some schedules; arrays have one entry a schedule.

    Attributes:
        columns: The schedules, a parameter each, in the order of their fields.
        score: What prunes, with their bank conflicts counted, between 0 and 1.
        conflicts: COEF_bc of their shared memory loads.
        passes: Passes of such a load.
        estimate: Predicted seconds.
    """

    columns: Columns
    score: Floats
    conflicts: Floats
    passes: Floats
    estimate: Floats

    def ranked(self) -> Predictions:
        """Return the same, smallest estimate first; ties in the order that they have."""
        places = np.argsort(self.estimate, kind="stable")
        columns = {name: values[places] for name, values in self.columns.items()}
        return Predictions(columns, *(each[places] for each in self.numbers()))

    def __len__(self) -> int:
        """Return how many schedules there are."""
        return len(self.estimate)

    def __eq__(self, other: object) -> bool:
        """Tell whether all numbers are the same."""
        if not isinstance(other, Predictions) or self.columns.keys() != other.columns.keys():
            return False
        columns = all(np.array_equal(self.columns[of], other.columns[of]) for of in self.columns)
        numbers = zip(self.numbers(), other.numbers(), strict=True)
        return columns and all(np.array_equal(a, b) for a, b in numbers)

    __hash__ = None  # type: ignore[assignment]

    def numbers(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.score, self.conflicts, self.passes, self.estimate


class ScoredSpace:
    """Some legal schedules of a template, as the models see them."""

    def __init__(
        self,
        problem: Problem,
        template: Template,
        target: Target,
        bound: Bound,
        columns: Columns,
        work: Work | None = None,
        pruning: Pruning = WAVES,
    ) -> None:
        """Take the schedules; nothing is computed yet.

        Args:
            problem: What to compute.
            template: Whose schedules they are.
            target: The GPU.
            bound: The problem's bound on the target.
            columns: The schedules.
            work: What they make the GPU do, where somebody counted it already.
            pruning: What keeps schedules.
        """
        self.problem, self.template, self.target, self.bound = problem, template, target, bound
        self.columns, self.pruning = columns, pruning
        self._counted = work

    @cached_property
    def work(self) -> Work:
        """What the schedules make the GPU do."""
        if self._counted is not None:
            return self._counted
        return self.template.work(self.problem, self.columns, self.target)

    @cached_property
    def without_conflicts(self) -> Floats:
        """Estimates of all schedules as if no load conflicted: no schedule is faster than so."""
        return estimate_of(self._grids, self.bound)

    def kept(self, legal: int) -> Rows:
        """Return the best rows of every family by counted score, in the order of the space.

        Args:
            legal: Schedules in the whole space, of which these may be a part.
        """
        families = self.template.families(self.columns)
        if not self.pruning.by_family:
            families = np.zeros_like(families)
        kept: list[Rows] = []
        for family in np.unique(families):
            rows = np.flatnonzero(families == family)
            count = self.pruning.kept(legal * rows.size // families.size)
            kept.append(self._best(rows, count))
        return np.sort(np.concatenate(kept))

    def predictions(self, rows: Rows) -> Predictions:
        """Return what the models say of some schedules, in their order."""
        conflicts, passes = self._loads.of(rows)
        grids = self._with_conflicts(rows, passes)
        score = self.pruning.score(grids, self._operations, conflicts)
        names = [field.name for field in fields(self.template.schedule_type)]
        columns = {name: self.columns[name][rows] for name in names}
        seconds = estimate_of(grids, self.bound)
        return Predictions(columns, score, conflicts, passes, seconds)

    def all_rows(self) -> Rows:
        """Return the places of all schedules."""
        return np.arange(len(next(iter(self.columns.values()))))

    @cached_property
    def _grids(self) -> Grids:
        """As if no load conflicted."""
        return Grids.of(self.work, self.target)

    @cached_property
    def _operations(self) -> float:
        """What the problem needs; of a copy, what its leanest schedule counts."""
        return self.bound.operations or float((self.work.blocks * self.work.block_flops).min())

    @cached_property
    def _loads(self) -> LoadCosts:
        return LoadCosts(self.problem, self.template, self.columns)

    @cached_property
    def _limits(self) -> Floats:
        """Scores as if no load conflicted: no schedule scores more."""
        return self.pruning.score(self._grids, self._operations, 1.0).round(_TIE_DIGITS)

    def _best(self, rows: Rows, count: int) -> Rows:
        """The best ``count`` of some rows by counted score; ties fall to the larger limit."""
        counted: list[Rows] = []
        scores = np.empty(0)
        for batch in self._falling(rows, count):
            if scores.size >= count:
                last = np.partition(scores, -count)[-count]
                if last >= self._limits[batch[0]]:
                    break
            conflicts, passes = self._loads.of(batch)
            grids = self._with_conflicts(batch, passes)
            found = self.pruning.score(grids, self._operations, conflicts).round(_TIE_DIGITS)
            counted.append(batch)
            scores = np.concatenate([scores, found])
        places = np.argsort(-scores, kind="stable")[:count]
        return np.concatenate(counted)[places]

    def _falling(self, rows: Rows, count: int) -> Iterator[Rows]:
        """Rows by falling limit in batches, ties by estimate without conflicts, then by place."""
        size = 2 * count
        while rows.size:
            limits = self._limits[rows]
            later = rows[:0]
            if rows.size > 2 * size:  # to sort all of them would cost more than what it is for
                within = limits >= np.partition(limits, -size)[-size]
                rows, later, limits = rows[within], rows[~within], limits[within]
            seconds = estimate_of(self._grids.rows(rows), self.bound)
            rows = rows[np.lexsort((seconds, -limits))]
            for start in range(0, rows.size, size):
                yield rows[start : start + size]
            rows, size = later, 2 * size

    def _with_conflicts(self, rows: Rows, passes: Floats) -> Grids:
        return Grids.of(at_rows(self.work, rows), self.target, passes)


def shared_of(predictions: Predictions, place: int) -> SharedCost:
    """Return what the shared memory loads of one of the schedules cost."""
    return SharedCost(float(predictions.conflicts[place]), float(predictions.passes[place]))
