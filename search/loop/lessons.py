"""Searchers begin with what the store knows of other problems: the lessons of each template."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wpk.problems import Problem
from wpk.search.models import Template, estimates
from wpk.search.searchers import Experience, Lesson
from wpk.search.store import Setup, TuningStore, measured_by_others
from wpk.targets import Target
from wpk.trial import Regime, Trial


class Lessons:
    """Lessons are read, and estimated again, when a template's first searcher begins."""

    def __init__(self, store: Path, target: Target, setup: Setup, regime: Regime, run: str) -> None:
        """Describe what is asked for.

        Args:
            store: The file of all trials.
            target: The GPU.
            setup: Where and with what is measured.
            regime: What the caches hold when it is.
            run: Whose own trials teach nothing: they are known as such.
        """
        self._store, self._target, self._setup = store, target, setup
        self._regime, self._run = regime, run
        self._known: dict[str, Experience | None] = {}

    def of(self, template: Template) -> Experience | None:
        """Return what a template's searchers can learn from; None where there is nothing.

        Raises:
            StoreError: The store cannot be read.
        """
        if template.name not in self._known:
            with TuningStore(self._store) as store:
                asked = store, template.maker, self._setup, self._regime, self._run
                measured = measured_by_others(*asked)
            lessons = (self._lesson(template, *each) for each in measured.items())
            found = tuple(each for each in lessons if each is not None)
            self._known[template.name] = Experience(found) if found else None
        return self._known[template.name]

    def _lesson(
        self, template: Template, problem: Problem, trials: Sequence[Trial]
    ) -> Lesson | None:
        """A problem's trials; None where nothing ran, or the template does not carry it any more."""
        if template.why_not(problem, self._target) is not None:
            return None
        costs = np.asarray([trial.cost for trial in trials])
        if not np.isfinite(costs).any():
            return None
        rows = [dict(trial.candidate.configuration) for trial in trials]
        columns = {name: np.asarray([row[name] for row in rows]) for name in rows[0]}
        predicted = estimates(problem, template, self._target, columns)
        return Lesson(problem.features(), columns, costs, predicted)
